"""Provider suite: preparing, holding and removing images."""

import threading

import pytest

from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Phase, PrepareProgress
from tests.contracts.provider_harness import GENEROUS, ProviderHarness, order_for, refused, silent, start


class _DeathError(Exception):
    """The node dies here."""


class ImagesSuite:
    def test_nothing_is_held_at_first(self, harness: ProviderHarness) -> None:
        assert list(harness.provider.held()) == []

    def test_what_is_prepared_is_held_and_nothing_else(self, harness: ProviderHarness) -> None:
        web, data = harness.variants.web, harness.variants.data
        harness.provider.prepare(web, silent)
        assert list(harness.provider.held()) == [web.content_key]
        harness.provider.prepare(data, silent)
        assert set(harness.provider.held()) == {web.content_key, data.content_key}

    def test_preparing_twice_is_preparing_once(self, harness: ProviderHarness) -> None:
        web = harness.variants.web
        harness.provider.prepare(web, silent)
        before = harness.trace_of(web)
        harness.provider.prepare(web, silent)
        assert harness.trace_of(web) == before
        harness.restart()
        harness.provider.prepare(web, silent)
        assert harness.trace_of(web) == before
        assert list(harness.provider.held()) == [web.content_key]

    def test_concurrent_prepares_join(self, harness: ProviderHarness) -> None:
        web, done, barrier = harness.variants.web, [], threading.Barrier(4)

        def prepare() -> None:
            barrier.wait()
            harness.provider.prepare(web, silent)
            done.append(list(harness.provider.held()))

        threads = [threading.Thread(target=prepare) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GENEROUS)
        # Each caller finds the image whole when its own call returns.
        assert done == [[web.content_key]] * 4
        assert start(harness, web).run("true").code == 0

    def test_progress_only_grows_and_ends_whole(self, harness: ProviderHarness) -> None:
        seen: list[PrepareProgress] = []
        harness.provider.prepare(harness.variants.web, seen.append)
        phases = list(Phase)
        assert seen
        assert [phases.index(p.phase) for p in seen] == sorted(phases.index(p.phase) for p in seen)
        assert all(0 <= p.bytes_done <= p.bytes_total for p in seen)
        assert {p.bytes_total for p in seen} == {harness.variants.web.size}
        assert seen[-1].phase is Phase.COMMIT

    def test_wrong_bytes_are_never_held(self, harness: ProviderHarness) -> None:
        damaged = harness.variants.damaged
        for _ in range(2):
            with refused(Reason.DIGEST_MISMATCH):
                harness.provider.prepare(damaged, silent)
            assert list(harness.provider.held()) == []
        order = order_for(damaged)
        with refused(Reason.IMAGE_ABSENT_ON_NODE):
            harness.provider.create(order)
        harness.restart()
        assert list(harness.provider.held()) == []

    def test_a_failing_image_touches_no_other(self, harness: ProviderHarness) -> None:
        sandbox = start(harness, harness.variants.web)
        with refused(Reason.DIGEST_MISMATCH):
            harness.provider.prepare(harness.variants.damaged, silent)
        assert list(harness.provider.held()) == [harness.variants.web.content_key]
        assert sandbox.run("cat", "/etc/which").stdout == b"web"

    @pytest.mark.parametrize("phase", list(Phase))
    def test_a_prepare_that_dies_is_not_held_and_can_be_repeated(self, harness: ProviderHarness, phase: Phase) -> None:
        def die(now: PrepareProgress) -> None:
            if now.phase is phase:
                raise _DeathError

        web = harness.variants.web
        with pytest.raises(_DeathError):
            harness.provider.prepare(web, die)
        harness.restart()
        if web.content_key not in harness.provider.held():
            with refused(Reason.IMAGE_ABSENT_ON_NODE):
                harness.provider.create(order_for(web))
        harness.provider.prepare(web, silent)
        assert list(harness.provider.held()) == [web.content_key]
        assert start(harness, web).run("cat", "/etc/which").stdout == b"web"

    def test_what_is_held_survives_a_restart(self, harness: ProviderHarness) -> None:
        harness.provider.prepare(harness.variants.web, silent)
        harness.restart()
        assert list(harness.provider.held()) == [harness.variants.web.content_key]
        assert start(harness, harness.variants.web).run("true").code == 0

    def test_a_probe_starts_and_leaves_nothing(self, harness: ProviderHarness) -> None:
        with refused(Reason.IMAGE_ABSENT_ON_NODE):
            harness.provider.probe(harness.variants.web)
        harness.provider.prepare(harness.variants.web, silent)
        harness.provider.probe(harness.variants.web)
        assert list(harness.provider.list_allocations()) == []

    def test_removing_while_in_use_is_refused(self, harness: ProviderHarness) -> None:
        web, data = harness.variants.web, harness.variants.data
        harness.provider.prepare(data, silent)
        sandbox = start(harness, web)
        with refused(Reason.IN_USE):
            harness.provider.remove(web.content_key)
        harness.restart()
        with refused(Reason.IN_USE):
            harness.provider.remove(web.content_key)
        assert web.content_key in harness.provider.held()
        assert sandbox.run("cat", "/etc/which").stdout == b"web"

        harness.provider.destroy(sandbox.allocation)
        harness.provider.remove(web.content_key)
        assert list(harness.provider.held()) == [data.content_key]
        with refused(Reason.IMAGE_ABSENT_ON_NODE):
            harness.provider.create(order_for(web))

    def test_removing_one_image_leaves_what_it_shares(self, harness: ProviderHarness) -> None:
        web, data = harness.variants.web, harness.variants.data
        sandbox = start(harness, data)
        harness.provider.prepare(web, silent)
        harness.provider.remove(web.content_key)
        harness.provider.remove(web.content_key)
        assert sandbox.run("cat", "/etc/which").stdout == b"data"
        assert start(harness, data).run("cat", "/etc/which").stdout == b"data"

    def test_a_removed_image_can_be_prepared_again(self, harness: ProviderHarness) -> None:
        web = harness.variants.web
        harness.provider.prepare(web, silent)
        harness.provider.remove(web.content_key)
        assert list(harness.provider.held()) == []
        assert start(harness, web).run("cat", "/etc/which").stdout == b"web"
