"""Provider suite: what a sandbox has written is kept, and another one starts from it, as often as wanted."""

import itertools

import pytest

from sandbay.domain.allocation import Presence
from sandbay.domain.declaration import Ability
from sandbay.domain.ids import SnapshotId
from sandbay.domain.reasons import Reason
from tests.contracts.provider_allocations import UNKNOWN
from tests.contracts.provider_harness import Offer, ProviderHarness, Sandbox, needs, order_for, refused, silent, start

_numbers = itertools.count(1)


def snapshot_id() -> SnapshotId:
    return SnapshotId(f"snp_{next(_numbers):020d}")


def able(harness: ProviderHarness) -> None:
    """Skip, by name, where the provider does not declare it; that it then refuses has a test of its own."""
    if Ability.SUSPEND not in harness.provider.declaration.abilities:
        pytest.skip("this provider does not declare suspend")


def resumed(harness: ProviderHarness, snapshot: SnapshotId) -> Sandbox:
    """Another allocation of the same release, from what was kept."""
    order = order_for(harness.variants.web, snapshot=snapshot)
    frozen = {name: artifact.value for name, artifact in order.frozen.artifacts.items()}
    assert harness.provider.create(order).artifacts == frozen, "the same release"
    return Sandbox(harness, order.allocation)


def write(harness: ProviderHarness, sandbox: Sandbox, path: str, data: bytes) -> None:
    harness.provider.files(sandbox.allocation).write(path, [data])


class SnapshotsSuite:
    def test_files_are_kept_and_the_sandbox_is_gone(self, harness: ProviderHarness) -> None:
        able(harness)
        first, snapshot = start(harness, harness.variants.web), snapshot_id()
        beside = start(harness, harness.variants.web)
        write(harness, first, "mine", b"in the workspace")
        write(harness, first, "/etc/which", b"altered")
        held = harness.provider.suspend(first.allocation, snapshot)
        assert held.id == snapshot
        assert held.bytes > 0
        assert harness.provider.presence(first.allocation) is Presence.ABSENT
        assert list(harness.provider.list_allocations()) == [beside.allocation]
        again = resumed(harness, snapshot)
        assert again.run("cat", "mine").stdout == b"in the workspace"
        assert again.run("cat", "/etc/which").stdout == b"altered"
        assert beside.run("cat", "/etc/which").stdout == b"web", "nobody else's files are touched"
        assert start(harness, harness.variants.web).run("cat", "/etc/which").stdout == b"web"

    def test_it_is_started_from_as_often_as_wanted_and_stays_as_it_was(self, harness: ProviderHarness) -> None:
        able(harness)
        first, snapshot = start(harness, harness.variants.web), snapshot_id()
        write(harness, first, "n", b"1")
        harness.provider.suspend(first.allocation, snapshot)
        for _ in range(2):
            again = resumed(harness, snapshot)
            assert again.run("cat", "n").stdout == b"1"
            write(harness, again, "n", b"2")
            harness.provider.destroy(again.allocation)

    def test_suspending_twice_is_suspending_once(self, harness: ProviderHarness) -> None:
        able(harness)
        first, snapshot = start(harness, harness.variants.web), snapshot_id()
        write(harness, first, "n", b"1")
        held = harness.provider.suspend(first.allocation, snapshot)
        assert harness.provider.suspend(first.allocation, snapshot) == held
        harness.restart()
        assert harness.provider.suspend(first.allocation, snapshot) == held
        assert resumed(harness, snapshot).run("cat", "n").stdout == b"1"

    def test_one_that_has_exited_is_kept_as_well(self, harness: ProviderHarness) -> None:
        able(harness)
        first, snapshot = start(harness, harness.variants.web), snapshot_id()
        write(harness, first, "n", b"1")
        harness.kill(first.allocation)
        harness.provider.suspend(first.allocation, snapshot)
        assert resumed(harness, snapshot).run("cat", "n").stdout == b"1"

    def test_what_is_not_there_is_not_kept(self, harness: ProviderHarness) -> None:
        able(harness)
        with refused(Reason.NOT_RUNNING):
            harness.provider.suspend(UNKNOWN, snapshot_id())

    def test_its_release_stays_until_it_is_dropped(self, harness: ProviderHarness) -> None:
        able(harness)
        first, snapshot = start(harness, harness.variants.web), snapshot_id()
        key = harness.variants.web.content_key
        harness.provider.suspend(first.allocation, snapshot)
        with refused(Reason.IN_USE):
            harness.provider.remove(key)
        harness.provider.drop_snapshot(snapshot)
        harness.provider.drop_snapshot(snapshot)
        with refused(Reason.START_FAILED):
            harness.provider.create(order_for(harness.variants.web, snapshot=snapshot))
        harness.provider.remove(key)
        assert key not in harness.provider.held()

    def test_it_is_of_its_release_and_of_no_other(self, harness: ProviderHarness) -> None:
        able(harness)
        first, snapshot = start(harness, harness.variants.web), snapshot_id()
        harness.provider.suspend(first.allocation, snapshot)
        harness.provider.prepare(harness.variants.data, silent)
        order = order_for(harness.variants.data, snapshot=snapshot)
        with refused(Reason.START_FAILED):
            harness.provider.create(order)
        assert harness.provider.presence(order.allocation) is Presence.ABSENT

    def test_owners_modes_links_and_what_was_removed_are_kept(self, harness: ProviderHarness) -> None:
        able(harness)
        needs(harness, Offer.SHELL)
        first, snapshot = start(harness, harness.variants.web), snapshot_id()
        made = (
            "mkdir -p /srv/a; echo 1 > /srv/a/one; ln /srv/a/one /srv/a/two; ln -s one /srv/a/three;"
            "chmod 4750 /srv/a/one;"
            "echo x > /workspace/x; chown 1000:1000 /workspace/x; chown 7:9 /srv/a; rm /etc/which;"
            "mkfifo /srv/pipe; chmod 0700 /workspace; chown 1000 /workspace"
        )
        assert first.sh(made).code == 0
        look = (
            "stat -c '%n %U %u:%g %a %h %F' /srv/a /srv/a/one /srv/a/two /srv/a/three /srv/pipe;"
            "stat -c '%n %U %u:%g %a %h %F' /workspace /workspace/x;"
            "test -e /etc/which; echo $?"
        )
        before = first.sh(look).stdout
        assert before.endswith(b"1\n")
        harness.provider.suspend(first.allocation, snapshot)
        again = resumed(harness, snapshot)
        assert again.sh(look).stdout == before
        assert again.run("echo", "not root outside").code == 0
