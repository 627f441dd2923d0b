"""Kill -9 before and after every durable step of a Session's whole life; the next process brings it to a right end."""

from pathlib import Path

import pytest

from sandbay.app.admit_session import Asked, admit_session
from sandbay.app.images import find_image, find_release
from sandbay.app.sessions import end_session, list_sessions
from sandbay.domain.allocation import AllocationState
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ReleaseState
from sandbay.domain.session import FINAL, SessionState
from sandbay.ports.records import Page
from sandbay.ports.store import ReportsOf, Sessions
from tests.app.world import KilledError, Life, Running, Stumble, StumbleError, World, eventually

KEY = "the-only-create"


def story(running: Running) -> None:
    """Register, wait for the proof, create, end: what a client does who repeats each call until it is answered."""
    running.start()
    work(running)


def work(running: Running) -> None:
    """The story after the start; every part of it may be repeated."""
    running.register("web", "web", tools={"echo": "echo echo 1.2"})
    core = running.core
    eventually(lambda: _alive(running) and _active(running))
    admitted = admit_session(core, running.actor, Asked("web", wait_seconds=60), KEY)
    session = admitted.record.session.id
    eventually(lambda: _alive(running) and _state(running) is not SessionState.STARTING)
    end_session(core, running.actor, session)
    eventually(lambda: _alive(running) and _state(running) in FINAL)


def _alive(running: Running) -> bool:
    if running.life.dead.is_set():
        raise KilledError
    return True


def _active(running: Running) -> bool:
    return find_release(find_image(running.core, "web"), 1).status.state is ReleaseState.ACTIVE


def _state(running: Running) -> SessionState:
    return running.core.store.read(Sessions())[0].session.state


def steps(root: Path) -> int:
    """How many durable steps an undisturbed story has."""
    world, life = World(root), Life()
    story(world.born(life))
    world.close()
    assert life.steps > 10, "the story no longer reaches what it is about"
    return life.steps


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["before", "after"])
def test_a_kill_at_any_step_is_made_good(tmp_path: Path, *, after: bool) -> None:
    for step in range(1, steps(tmp_path / "undisturbed") + 1):
        killed_and_born_again(tmp_path / str(step), Life(step, after=after))


def killed_and_born_again(root: Path, life: Life) -> None:
    world = World(root)
    try:
        dying = world.born(life)
        try:
            story(dying)
        except KilledError:
            pass
        except (RefusedError, LookupError):
            assert life.dead.is_set(), "refused, although nobody died"
        life.dead.set()
        dying.close()
        running = world.born()
        story(running)
        judge(running)
    finally:
        world.close()


@pytest.mark.slow
def test_a_step_that_fails_once_is_made_good(tmp_path: Path) -> None:
    """The client repeats what it was refused; node and reconciler repeat what nobody saw fail."""
    for step in range(1, steps(tmp_path / "undisturbed") + 1):
        world = World(tmp_path / str(step))
        try:
            running = world.born(Stumble(step))
            try:
                running.start()
            except StumbleError:
                running = world.born().start()
            try:
                work(running)
            except StumbleError:
                work(running)
            judge(running)
        finally:
            world.close()


def judge(running: Running) -> None:
    """One image, one release, one Session that ended; nothing runs and nothing is leased."""
    world, core = running.world, running.core
    records = list_sessions(core, None, Page())
    assert [r.session.state for r in records] == [SessionState.ENDED]
    assert all(r.allocation is None or r.allocation.state is AllocationState.CLOSED for r in records)
    eventually(lambda: not world.node.sandboxes)
    entry = find_image(core, "web")
    assert sorted(entry.releases) == [1]
    assert entry.channels["stable"].number == 1
    (variant,) = entry.releases[1].release.variants
    assert variant.content_key in world.node.probed, "bytes that are whole are no proof"
    assert dict(entry.releases[1].tools(variant)) == {"echo": "1.2"}
    assert len(core.store.read(ReportsOf(entry.releases[1].release.id))) == 1


def test_the_same_key_gives_the_same_session_whatever_happened_to_it(running: Running) -> None:
    running.register("web", "web")
    eventually(lambda: _active(running))
    first = admit_session(running.core, running.actor, Asked("web", wait_seconds=5), KEY)
    again = admit_session(running.core, running.actor, Asked("web", wait_seconds=5), KEY)
    assert (first.created, again.created) == (True, False)
    assert first.record.session.id == again.record.session.id
    with pytest.raises(RefusedError) as refused:
        admit_session(running.core, running.actor, Asked("web", wait_seconds=6), KEY)
    assert refused.value.refusal.reason is Reason.IDEMPOTENCY_CONFLICT
