"""The disk budget of a node under a real Core: what goes, what stays and why, and a kill at every step of it."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from sandbay.app.admit_session import Asked, admit_session
from sandbay.app.audit import entries
from sandbay.app.core import SYSTEM
from sandbay.app.disk import NodeDisk, disks
from sandbay.app.holdings import holdings, preload
from sandbay.app.images import find_image, find_release
from sandbay.app.sessions import end_session
from sandbay.domain.disk import Kept
from sandbay.domain.ids import AllocationId, SessionId
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, ReleaseState
from sandbay.domain.session import FINAL
from sandbay.ports.changes import Unpin
from sandbay.ports.records import Page
from sandbay.ports.store import SessionOf
from tests.app.world import NODE, KilledError, Life, Running, World, eventually

NAMES = ["a", "b", "c", "d", "e", "f"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Six images of one unit each, proved on the one node; `a` is the default. `b` is the longest unused."""
    world = filled(tmp_path)
    yield world
    world.close()


def filled(root: Path) -> World:
    world = World(root)
    running = world.born().start()
    for name in NAMES:
        running.register(name, name * 20)
        eventually(partial(active, running, name))
    age(world, running)
    return world


def age(world: World, running: Running) -> None:
    for n, name in enumerate(NAMES):
        world.node.used[key_of(running, name)] = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=n)


def active(running: Running, name: str) -> bool:
    return find_release(find_image(running.core, name), 1).status.state is ReleaseState.ACTIVE


def key_of(running: Running, name: str) -> ContentKey:
    (variant,) = find_release(find_image(running.core, name), 1).release.variants
    return variant.content_key


def size(world: World) -> int:
    """Of one image."""
    return max(layer.size for variant in world.node.held.values() for layer in variant.layers)


def here(world: World, running: Running) -> list[str]:
    return [name for name in NAMES if key_of(running, name) in world.node.held]


def state(running: Running, name: str) -> ReadinessState:
    (holding,) = holdings(running.core, find_image(running.core, name))
    return holding.readiness.state


def session(running: Running, name: str, wait: int = 60) -> SessionId:
    return admit_session(running.core, running.actor, Asked(name, wait_seconds=wait)).record.session.id


def status(running: Running, session_id: SessionId) -> str:
    record = running.core.store.read(SessionOf(session_id))
    assert record is not None
    return record.session.state.value


def settled(world: World, running: Running, *names: str) -> Callable[[], bool]:
    """Held, and told to Core as held, are exactly these."""
    return lambda: (
        here(world, running) == list(names)
        and [name for name in NAMES if state(running, name) is ReadinessState.READY] == list(names)
    )


def look(running: Running) -> NodeDisk:
    (found,) = disks(running.core)
    return found


def squeeze(world: World, units: float) -> None:
    world.node.budget = round(units * size(world)) + 1


def test_the_longest_unused_go_and_what_is_needed_stays(world: World) -> None:
    running = world.lives[-1]
    living = session(running, "c")
    squeeze(world, 6.5)
    eventually(settled(world, running, "a", "c", "e", "f"))
    kept = {it.releases[0].image_name: it.kept for it in look(running).variants}
    assert kept == {"a": Kept.REQUIRED, "c": Kept.SESSION, "e": None, "f": None}
    assert status(running, living) == "running"
    gone = [e for e in entries(running.core, None, Page()) if e.action == "image.evict"]
    assert [(e.principal, e.outcome, (e.details or {})["releases"], (e.details or {})["why"]) for e in gone] == [
        ("system", "done", [f"{name}:1"], "room") for name in ("d", "b")
    ]


def test_what_df_shows_is_what_happens_next(world: World) -> None:
    running = world.lives[-1]
    running.close()
    squeeze(world, 6)
    shown = look(running)
    assert [it.releases[0].image_name for it in shown.variants if it.held.key in shown.next] == ["b", "c"]
    again = world.born().start()
    eventually(settled(world, again, "a", "d", "e", "f"))
    assert look(again).next == ()


def test_demand_makes_room_and_then_runs(world: World) -> None:
    running = world.lives[-1]
    squeeze(world, 6)
    eventually(settled(world, running, "a", "d", "e", "f"))
    back = session(running, "b")
    eventually(lambda: status(running, back) == "running")
    assert here(world, running)[:2] == ["a", "b"]
    assert "d" not in here(world, running), "the longest unused made room for three times its packed size"
    assert look(running).disk is not None


def test_preloads_that_do_not_fit_wait_and_make_nothing_go(world: World) -> None:
    running = world.lives[-1]
    squeeze(world, 8)
    assert here(world, running) == NAMES
    running.register("g", "g" * 20)
    eventually(partial(active, running, "g"))
    eventually(lambda: len(here(world, running)) < len(NAMES))
    gone = [name for name in NAMES if name not in here(world, running)]
    before = dict(world.node.held)
    for name in gone:
        preload(running.core, SYSTEM, name, None, None)
    eventually(lambda: all(state(running, name) is ReadinessState.QUEUED for name in gone))
    eventually(lambda: {it.image_name for it, _ in look(running).waiting} == set(gone))
    assert world.node.held == before
    wanted = gone[0]
    eventually(lambda: status(running, session(running, wanted)) in ("running", "waiting", "starting"))
    eventually(lambda: state(running, wanted) is ReadinessState.READY)


def test_when_nothing_may_go_it_is_told_before_anything_is_fetched(world: World) -> None:
    running = world.lives[-1]
    living = [session(running, name) for name in ("b", "c")]
    squeeze(world, 3)
    eventually(settled(world, running, "a", "b", "c"))
    world.node.unpacked.clear()
    running.register("g", "g" * 20)
    (holding,) = holdings(running.core, find_image(running.core, "g"))
    eventually(lambda: state(running, "g") is ReadinessState.FAILED)
    (holding,) = holdings(running.core, find_image(running.core, "g"))
    assert holding.readiness.fault is not None
    assert holding.readiness.fault.reason is Reason.NO_SPACE
    assert holding.readiness.retry_at is not None, "it passes"
    assert not world.node.unpacked
    assert here(world, running) == ["a", "b", "c"]
    assert {status(running, it) for it in living} == {"running"}
    assert not active(running, "g")


def test_what_a_session_waits_for_is_not_let_go(world: World) -> None:
    """It waits for a place, not for the image, so no wish speaks for it."""
    running = world.lives[-1]
    living = [session(running, "c"), session(running, "d")]
    eventually(lambda: {status(running, it) for it in living} == {"running"})
    waiting = session(running, "b")
    assert status(running, waiting) == "waiting"
    age(world, running)
    squeeze(world, 4.5)
    eventually(settled(world, running, "a", "b", "c", "d"))
    assert {it.releases[0].image_name: it.kept for it in look(running).variants}["b"] is Kept.WAITING
    end_session(running.core, running.actor, living[0])
    eventually(lambda: status(running, waiting) == "running")


def test_what_will_not_go_keeps_nothing_else_and_is_not_tried_on_and_on(world: World) -> None:
    """A sandbox of it that Core does not know of is still there."""
    running = world.lives[-1]
    there = session(running, "b")
    eventually(lambda: status(running, there) == "running")
    (foreign,) = world.node.sandboxes.values()
    world.node.sandboxes[AllocationId("alo_foreign")] = foreign
    end_session(running.core, running.actor, there)
    eventually(lambda: status(running, there) in FINAL)
    age(world, running)
    squeeze(world, 6)
    eventually(lambda: here(world, running) == ["a", "b", "d", "e", "f"])
    evicted = [e for e in entries(running.core, None, Page()) if e.action == "image.evict"]
    running.agent._images.step()
    assert [e for e in entries(running.core, None, Page()) if e.action == "image.evict"] == evicted
    assert len(evicted) == 2


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["before", "after"])
def test_a_kill_at_any_step_of_letting_go_is_harmless(tmp_path: Path, *, after: bool) -> None:
    first = filled(tmp_path / "first")
    first.close()
    step = 1
    while killed_and_born_again(copied(first, tmp_path / str(step)), Life(step, after=after)):
        step += 1
    assert step > 8, "the story no longer reaches what it is about"


def killed_and_born_again(world: World, life: Life) -> bool:
    """Whether the story was long enough for the kill; either way its end is right."""
    squeeze(world, 6)
    dying = world.born(life)
    with contextlib.suppress(KilledError):
        dying.start()
        eventually(lambda: life.dead.is_set() or len(world.node.held) == 4)
    killed = life.dead.is_set()
    life.dead.set()
    dying.close()
    again = world.born().start()
    eventually(lambda: below_the_mark(world, again))
    world.close()
    return killed


def below_the_mark(world: World, running: Running) -> bool:
    """Nothing but the two longest unused has gone; one may be there still, with its pin or without."""
    ready = {name for name in NAMES if state(running, name) is ReadinessState.READY}
    there = here(world, running)
    return {"a", "d", "e", "f"} <= ready <= set(there) and "b" not in there


def copied(world: World, root: Path) -> World:
    """The same again, with nothing running."""
    shutil.copytree(world.root, root)
    copy = World(root)
    copy.node.held, copy.node.used = dict(world.node.held), dict(world.node.used)
    return copy


def test_bytes_that_nobody_names_go_first_come_first_served(world: World) -> None:
    """As after a crash between the grant and its end: no pin, no cell that says ready, but bytes."""
    running = world.lives[-1]
    running.close()
    key = key_of(running, "f")
    world.store.apply(Unpin(NODE, key))
    world.node.used[key] = datetime(2025, 1, 1, tzinfo=UTC)
    again = world.born().start()
    eventually(lambda: state(again, "f") is ReadinessState.ABSENT)
    assert here(world, again) == NAMES, "bytes are no trouble before room is short"
    squeeze(world, 6)
    eventually(settled(world, again, "a", "c", "d", "e"))
