"""Suspend and resume through Core and node: what is kept, what goes, and one outcome whoever does what when."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from sandbay.app.admit_session import Asked, admit_session
from sandbay.app.disk import grant
from sandbay.app.outlive import outlive_sessions
from sandbay.app.sessions import end_session, files_of
from sandbay.app.suspend import resume_session, suspend_session
from sandbay.app.templates import create_template
from sandbay.domain.errors import RefusedError
from sandbay.domain.inline import InlineFile
from sandbay.domain.life import EndCause
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL, SessionState
from sandbay.ports.records import FIRST_PAGE, SessionRecord
from sandbay.ports.snapshots import SnapshotOf, SnapshotsToDrop
from sandbay.ports.store import Audit, Nodes, OpenAllocations, SessionEvents, Sessions
from tests.app.test_crash_anywhere import KEY, _active, _alive
from tests.app.test_outlive import later
from tests.app.test_setup import now, project, settled, text
from tests.app.world import NODE, KilledError, Life, Running, World, eventually

S = SessionState
DAY = 24 * 3600.0


def begun(running: Running) -> SessionRecord:
    running.register("web", "web")
    eventually(lambda: _active(running))
    asked = Asked("web", wait_seconds=60, env={"SAID": "yes"})
    return settled(running, admit_session(running.core, running.actor, asked, KEY).record)


def reached(running: Running, record: SessionRecord, state: SessionState) -> SessionRecord:
    eventually(lambda: now(running, record).session.state is state)
    return now(running, record)


def kept(running: Running) -> SessionRecord:
    """A Session that left a file behind and is suspended."""
    record = begun(running)
    (sandbox,) = running.world.node.sandboxes.values()
    sandbox.files.write("notes", [b"mine"])
    suspend_session(running.core, running.actor, record.session.id)
    return reached(running, record, S.SUSPENDED)


def states(running: Running, record: SessionRecord) -> Sequence[SessionState]:
    return [event.state for event in running.core.store.read(SessionEvents(record.session.id))]


def refused(what: Callable[[], object]) -> Reason:
    with pytest.raises(RefusedError) as error:
        what()
    return error.value.refusal.reason


def test_what_is_kept_comes_back_and_compute_goes(running: Running) -> None:
    record = kept(running)
    core, session = running.core, record.session.id
    assert not running.world.node.sandboxes
    assert core.store.read(OpenAllocations(NODE)) == ()
    snapshot = core.store.read(SnapshotOf(session))
    assert snapshot is not None
    assert (snapshot.frozen, snapshot.frozen_digest) == (record.session.frozen, record.session.frozen_digest)
    assert refused(lambda: files_of(core, now(running, record))) is Reason.NOT_RUNNING
    resume_session(core, running.actor, session)
    again = reached(running, record, S.RUNNING)
    assert text(running, "/workspace/notes") == "mine"
    (sandbox,) = running.world.node.sandboxes.values()
    assert sandbox.order.env == {"SAID": "yes"}
    assert again.frozen == record.frozen
    assert again.allocation is not None
    assert record.allocation is not None
    assert again.allocation.id != record.allocation.id
    assert states(running, record) == [S.STARTING, S.RUNNING, S.SUSPENDING, S.SUSPENDED, S.RESUMING, S.RUNNING]
    eventually(lambda: not running.world.node.snapshots)
    assert core.store.read(SnapshotOf(session)) is None
    actions = [it.action for it in core.store.read(Audit(session, FIRST_PAGE))]
    assert actions[:3] == ["session.resume", "session.suspended", "session.suspend"]


def test_both_may_be_repeated(running: Running) -> None:
    record = kept(running)
    core, actor, session = running.core, running.actor, record.session.id
    assert suspend_session(core, actor, session).session.revision == record.session.revision
    resume_session(core, actor, session)
    reached(running, record, S.RUNNING)
    revision = now(running, record).session.revision
    assert resume_session(core, actor, session).session.revision == revision


def test_a_setup_is_not_repeated(running: Running) -> None:
    running.register("web", "web")
    eventually(lambda: _active(running))
    said = {"files": (InlineFile("log", "once", 4),)}
    create_template(running.core, running.actor, project(running), "work", said)
    admitted = admit_session(running.core, running.actor, Asked("web", template="work", wait_seconds=60))
    record = settled(running, admitted.record)
    assert text(running, "/workspace/log") == "once"
    next(iter(running.world.node.sandboxes.values())).files.write("log", [b"mine"])
    suspend_session(running.core, running.actor, record.session.id)
    reached(running, record, S.SUSPENDED)
    resume_session(running.core, running.actor, record.session.id)
    reached(running, record, S.RUNNING)
    assert text(running, "/workspace/log") == "mine"


def test_a_resume_that_fails_loses_nothing(running: Running) -> None:
    record = kept(running)
    world = running.world.node
    snapshots = dict(world.snapshots)
    world.knobs.boots = {"image_manifest_digest": "sha256:" + "0" * 64}
    resume_session(running.core, running.actor, record.session.id)
    eventually(lambda: S.RESUMING in states(running, record) and states(running, record)[-1] is S.SUSPENDED)
    shelved = now(running, record).session
    assert shelved.fault is not None
    assert shelved.fault.reason is Reason.IMAGE_MISMATCH
    assert world.snapshots.keys() == snapshots.keys()
    world.knobs.boots = None
    eventually(lambda: not world.sandboxes and not running.core.store.read(OpenAllocations(NODE)))
    resume_session(running.core, running.actor, record.session.id)
    assert reached(running, record, S.RUNNING).session.fault is None, "what is over is not told for ever"


def test_what_is_suspended_keeps_its_release(running: Running) -> None:
    record = kept(running)
    node = next(it for it in running.core.store.read(Nodes()) if it.id == NODE)
    key = record.frozen.content_key
    assert grant(running.core, node, [key]) == frozenset()
    end_session(running.core, running.actor, record.session.id)
    assert reached(running, record, S.ENDED).session.ended_because is EndCause.ASKED
    eventually(lambda: not running.world.node.snapshots)
    eventually(lambda: running.core.store.read(SnapshotsToDrop(NODE)) == ())


def test_its_end_is_told_and_then_it_ends(running: Running) -> None:
    record = kept(running)
    outlive_sessions(later(running, 28 * DAY))
    assert now(running, record).session.foretold is None
    outlive_sessions(later(running, 29.5 * DAY))
    told = now(running, record).session.foretold
    assert told is not None
    assert told.because is EndCause.KEPT_LONG_ENOUGH
    outlive_sessions(later(running, 31 * DAY))
    assert reached(running, record, S.ENDED).session.ended_because is EndCause.KEPT_LONG_ENOUGH
    eventually(lambda: not running.world.node.snapshots)


@pytest.mark.parametrize("state", [S.RUNNING, S.SUSPENDED])
def test_all_at_once_come_to_one_end(running: Running, state: SessionState) -> None:
    record = kept(running) if state is S.SUSPENDED else begun(running)
    core, actor, session = running.core, running.actor, record.session.id
    gate = threading.Barrier(6)

    def one(act: Callable[[], object]) -> Reason | None:
        gate.wait(30)
        try:
            act()
        except RefusedError as error:
            return error.refusal.reason
        return None

    acts = [suspend_session, resume_session, end_session] * 2
    with ThreadPoolExecutor(6) as threads:
        said = set(threads.map(one, [partial(act, core, actor, session) for act in acts]))
    assert said <= {None, Reason.NOT_RUNNING, Reason.NOT_SUSPENDED, Reason.ALREADY_ENDED, Reason.REVISION_STALE}
    eventually(lambda: now(running, record).session.state in FINAL)
    assert now(running, record).session.state is S.ENDED
    eventually(lambda: not running.world.node.sandboxes and not running.world.node.snapshots)


def story(running: Running) -> None:
    """Create, suspend, resume, end: each repeated until it is answered, as a client does."""
    running.start()
    core, actor = running.core, running.actor
    record = begun(running)
    session = record.session.id
    eventually(lambda: _alive(running) and now(running, record).session.state is not S.STARTING)
    if now(running, record).session.state is S.RUNNING and S.SUSPENDING not in states(running, record):
        suspend_session(core, actor, session)
    eventually(lambda: _alive(running) and now(running, record).session.state is not S.SUSPENDING)
    if now(running, record).session.state is S.SUSPENDED:
        eventually(lambda: _alive(running) and _resumed(running, record))
    eventually(lambda: _alive(running) and now(running, record).session.state is not S.RESUMING)
    end_session(core, actor, session)
    eventually(lambda: _alive(running) and now(running, record).session.state in FINAL)
    eventually(lambda: _alive(running) and not core.store.read(SnapshotsToDrop(NODE)))


def _resumed(running: Running, record: SessionRecord) -> bool:
    try:
        resume_session(running.core, running.actor, record.session.id)
    except RefusedError as error:
        if not error.refusal.reason.about.retry:
            raise
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_step_leaves_one_outcome(tmp_path: Path, *, after: bool) -> None:
    world, life = World(tmp_path / "undisturbed"), Life()
    story(world.born(life))
    world.close()
    for step in range(1, life.steps + 1):
        _killed(tmp_path / str(step), Life(step, after=after))


def _killed(root: Path, life: Life) -> None:
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
        (record,) = running.core.store.read(Sessions())
        assert record.session.state is S.ENDED, "nothing was lost on the way"
        eventually(lambda: not world.node.sandboxes and not world.node.snapshots)
    finally:
        world.close()
