"""Provider suite: creating, finding again and destroying allocations."""

import dataclasses
import threading
from collections.abc import Callable

import pytest

from sandbay.domain.allocation import Presence
from sandbay.domain.command import Command, TerminalSize
from sandbay.domain.declaration import Ability, Network
from sandbay.domain.ids import AllocationId, SnapshotId
from sandbay.domain.reasons import Reason
from tests.contracts.provider_harness import GENEROUS, ProviderHarness, Sandbox, order_for, refused, silent, start

UNKNOWN = AllocationId("alo_" + "z" * 20)


class AllocationsSuite:
    def test_without_its_image_nothing_is_made(self, harness: ProviderHarness) -> None:
        # Another image is here and healthy: it may not step in.
        harness.provider.prepare(harness.variants.data, silent)
        order = order_for(harness.variants.web)
        with refused(Reason.IMAGE_ABSENT_ON_NODE):
            harness.provider.create(order)
        assert list(harness.provider.list_allocations()) == []
        assert harness.provider.presence(order.allocation) is Presence.ABSENT
        assert list(harness.provider.held()) == [harness.variants.data.content_key]

    def test_what_booted_is_what_was_frozen(self, harness: ProviderHarness) -> None:
        for variant, says in ((harness.variants.web, b"web"), (harness.variants.data, b"data")):
            harness.provider.prepare(variant, silent)
            order = order_for(variant)
            frozen = {name: artifact.value for name, artifact in order.frozen.artifacts.items()}
            assert harness.provider.create(order).artifacts == frozen
            assert harness.provider.booted(order.allocation).artifacts == frozen
            assert Sandbox(harness, order.allocation).run("cat", "/etc/which").stdout == says

    def test_creating_twice_is_creating_once(self, harness: ProviderHarness) -> None:
        harness.provider.prepare(harness.variants.web, silent)
        order = order_for(harness.variants.web)
        first = harness.provider.create(order)
        assert harness.provider.create(order) == first
        harness.restart()
        assert harness.provider.create(order) == first
        assert list(harness.provider.list_allocations()) == [order.allocation]

    def test_concurrent_creates_make_one_sandbox_each(self, harness: ProviderHarness) -> None:
        harness.provider.prepare(harness.variants.web, silent)
        orders = [order_for(harness.variants.web) for _ in range(2)]
        booted: list[tuple[AllocationId, int]] = []

        def create(index: int) -> None:
            order = orders[index % 2]
            booted.append((order.allocation, harness.provider.create(order).host_pid))

        threads = [threading.Thread(target=create, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GENEROUS)
        assert len(booted) == 4
        assert len(set(booted)) == 2
        assert set(harness.provider.list_allocations()) == {order.allocation for order in orders}

    def test_sandboxes_share_nothing_and_leave_the_image_alone(self, harness: ProviderHarness) -> None:
        one, two = start(harness, harness.variants.web), start(harness, harness.variants.web)
        files = harness.provider.files(one.allocation)
        files.write("/etc/which", [b"changed"])
        files.write("mine", [b"mine"])
        assert one.run("cat", "/etc/which", "/workspace/mine").stdout == b"changedmine"
        for other in (two, start(harness, harness.variants.web)):
            assert other.run("cat", "/etc/which").stdout == b"web"
            with refused(Reason.PATH_NOT_FOUND):
                harness.provider.files(other.allocation).stat("mine")

    def test_presence_tells_what_is_there(self, harness: ProviderHarness) -> None:
        assert harness.provider.presence(UNKNOWN) is Presence.ABSENT
        sandbox = start(harness, harness.variants.web)
        assert harness.provider.presence(sandbox.allocation) is Presence.RUNNING
        harness.provider.destroy(sandbox.allocation)
        assert harness.provider.presence(sandbox.allocation) is Presence.ABSENT

    def test_destroying_is_final_and_may_be_repeated(self, harness: ProviderHarness) -> None:
        sandbox, other = start(harness, harness.variants.web), start(harness, harness.variants.web)
        for _ in range(2):
            harness.provider.destroy(sandbox.allocation)
        harness.restart()
        harness.provider.destroy(sandbox.allocation)
        assert list(harness.provider.list_allocations()) == [other.allocation]
        assert other.run("true").code == 0

    def test_destroying_the_unknown_is_fine(self, harness: ProviderHarness) -> None:
        harness.provider.destroy(UNKNOWN)
        assert list(harness.provider.list_allocations()) == []

    def test_nothing_can_be_done_with_what_does_not_run(self, harness: ProviderHarness) -> None:
        destroyed = start(harness, harness.variants.web)
        harness.provider.destroy(destroyed.allocation)
        for allocation in (UNKNOWN, destroyed.allocation):
            self._cannot_be_used(harness, allocation)

    def test_a_sandbox_that_died_is_told_from_one_that_runs(self, harness: ProviderHarness) -> None:
        sandbox, other = start(harness, harness.variants.web), start(harness, harness.variants.web)
        harness.kill(sandbox.allocation)
        assert harness.provider.presence(sandbox.allocation) is Presence.EXITED
        self._cannot_be_used(harness, sandbox.allocation)
        assert set(harness.provider.list_allocations()) == {sandbox.allocation, other.allocation}
        harness.restart()
        assert harness.provider.presence(sandbox.allocation) is Presence.EXITED
        harness.provider.destroy(sandbox.allocation)
        assert list(harness.provider.list_allocations()) == [other.allocation]
        assert other.run("true").code == 0

    def test_a_restart_adopts_what_runs(self, harness: ProviderHarness) -> None:
        sandbox = start(harness, harness.variants.data)
        harness.provider.files(sandbox.allocation).write("kept", [b"kept"])
        booted = harness.provider.booted(sandbox.allocation)
        harness.restart()
        assert list(harness.provider.list_allocations()) == [sandbox.allocation]
        assert harness.provider.presence(sandbox.allocation) is Presence.RUNNING
        assert harness.provider.booted(sandbox.allocation) == booted
        assert sandbox.run("cat", "/workspace/kept").stdout == b"kept"
        assert harness.provider.files(sandbox.allocation).read("kept").read() == b"kept"
        harness.provider.destroy(sandbox.allocation)
        assert list(harness.provider.list_allocations()) == []

    def test_every_network_mode_holds_or_is_refused(self, harness: ProviderHarness) -> None:
        harness.provider.prepare(harness.variants.web, silent)
        for network in Network:
            order = order_for(harness.variants.web, network=network)
            if network in harness.provider.declaration.networks:
                harness.provider.create(order)
                assert harness.provider.presence(order.allocation) is Presence.RUNNING
                harness.provider.destroy(order.allocation)
            else:
                with refused(Reason.NETWORK_UNSUPPORTED):
                    harness.provider.create(order)
            assert list(harness.provider.list_allocations()) == []

    @pytest.mark.parametrize("ability", list(Ability))
    def test_every_ability_is_there_or_refused(self, harness: ProviderHarness, ability: Ability) -> None:
        sandbox = start(harness, harness.variants.web)
        uses: dict[Ability, Callable[[], object]] = {
            Ability.EXEC: lambda: harness.provider.exec(
                sandbox.allocation, Command(argv=("true",)), emit=lambda _, __: None
            ),
            Ability.PTY: lambda: harness.provider.exec(
                sandbox.allocation, Command(argv=("true",), terminal=TerminalSize()), emit=lambda _, __: None
            ),
            Ability.FILES: lambda: harness.provider.files(sandbox.allocation).list("/etc"),
            Ability.SUSPEND: lambda: harness.provider.suspend(sandbox.allocation, SnapshotId("snp_ability")),
        }
        if ability in harness.provider.declaration.abilities:
            # A declared ability without a use here is a declaration that nobody holds to its word.
            assert uses[ability]()
        elif ability in uses:
            with refused(Reason.ABILITY_UNSUPPORTED):
                uses[ability]()

    def test_a_release_carries_what_the_declaration_asks_for(self, harness: ProviderHarness) -> None:
        declaration = harness.provider.declaration
        for variant in (harness.variants.web, harness.variants.data):
            assert variant.platform in declaration.platforms
            assert all(rule.fits(variant.artifacts[name].value) for name, rule in declaration.artifacts.items())

    def test_an_order_of_other_bytes_is_another_image(self, harness: ProviderHarness) -> None:
        web, data = harness.variants.web, harness.variants.data
        harness.provider.prepare(web, silent)
        mixed = dataclasses.replace(web, artifacts={**web.artifacts, **dict(list(data.artifacts.items())[:1])})
        with refused(Reason.IMAGE_ABSENT_ON_NODE):
            harness.provider.create(order_for(mixed))

    @staticmethod
    def _cannot_be_used(harness: ProviderHarness, allocation: AllocationId) -> None:
        with refused(Reason.NOT_RUNNING):
            Sandbox(harness, allocation).run("true")
        with refused(Reason.NOT_RUNNING):
            harness.provider.booted(allocation)
        with refused(Reason.NOT_RUNNING):
            harness.provider.files(allocation).list("/")
