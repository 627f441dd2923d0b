"""Time goes by for Sessions: told, ended, failed; and use is known without a write for each."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sandbay.adapters.clock.system import SystemClock
from sandbay.app.admit_session import Asked, admit_session
from sandbay.app.core import Core, Settings
from sandbay.app.outlive import outlive_sessions
from sandbay.app.sessions import end_session, run_command
from sandbay.app.templates import create_template
from sandbay.domain.allocation import AllocationState
from sandbay.domain.command import Command
from sandbay.domain.life import NO_LIMIT, EndCause, Life
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL, SessionState
from sandbay.flow.outlive import LOST, SLOW_END, SLOW_START
from sandbay.ports.records import FIRST_PAGE, SessionRecord
from sandbay.ports.store import Audit, SessionEvents
from tests.app.test_crash_anywhere import _active
from tests.app.test_setup import now, project, settled, sh
from tests.app.world import Running, World, eventually

RUNNING, ENDING, ENDED, FAILED = (
    SessionState.RUNNING,
    SessionState.ENDING,
    SessionState.ENDED,
    SessionState.FAILED,
)


class Ahead(SystemClock):
    """So much later."""

    def __init__(self, seconds: float) -> None:
        self._by = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._by


def later(running: Running, seconds: float) -> Core:
    """The same Core, when so much time has gone by."""
    return replace(running.core, clock=Ahead(seconds))


@pytest.fixture
def begin(running: Running) -> Callable[..., SessionRecord]:
    """A Session that runs."""
    running.register("web", "web")
    eventually(lambda: _active(running))

    def one(life: Life = NO_LIMIT, template: str | None = None) -> SessionRecord:
        asked = Asked("web", wait_seconds=60, life=life, template=template)
        return settled(running, admit_session(running.core, running.actor, asked).record)

    return one


def gone(running: Running, record: SessionRecord) -> SessionRecord:
    eventually(lambda: now(running, record).session.state in FINAL)
    return now(running, record)


def test_an_unused_one_is_told_and_then_ends(running: Running, begin: Callable[..., SessionRecord]) -> None:
    record, beside = begin(Life(idle=400)), begin()
    outlive_sessions(later(running, 300))
    assert now(running, record).session.foretold is None
    outlive_sessions(later(running, 350))
    told = now(running, record).session.foretold
    assert told is not None
    assert told.because is EndCause.IDLE
    outlive_sessions(later(running, 390))
    assert now(running, record).session.state is RUNNING
    outlive_sessions(later(running, 410))
    assert gone(running, record).session.ended_because is EndCause.IDLE
    events = running.core.store.read(SessionEvents(record.session.id))
    assert [(it.state, it.foretold) for it in events[2:]] == [*((RUNNING, told), (ENDING, None), (ENDED, None))], (
        "it was said before it was done"
    )
    entry = next(it for it in running.core.store.read(Audit(record.session.id, FIRST_PAGE)) if "delete" in it.action)
    assert (entry.principal, entry.details) == ("system", {"because": "idle"})
    assert now(running, beside).session.state is RUNNING


def test_use_is_kept_in_memory_until_it_matters(running: Running, begin: Callable[..., SessionRecord]) -> None:
    record = begin(Life(idle=400))

    def use(core: Core) -> None:
        run_command(core, now(running, record), Command(argv=("true",)), emit=lambda *_: None)

    use(running.core)
    outlive_sessions(running.core)
    assert now(running, record).session.used_at is None, "a command costs no write"
    use(later(running, 200))
    outlive_sessions(later(running, 201))
    used = now(running, record).session.used_at
    assert used is not None
    assert used > record.session.created_at + timedelta(seconds=190)
    outlive_sessions(later(running, 410))
    assert now(running, record).session.state is RUNNING
    outlive_sessions(later(running, 550))
    assert now(running, record).session.foretold is not None
    another = replace(later(running, 555), uses=type(running.core.uses)())
    use(another)
    outlive_sessions(later(running, 556))
    assert now(running, record).session.foretold is None, "what another Core saw takes it back here"
    outlive_sessions(later(running, 900))
    assert now(running, record).session.state is RUNNING


def test_a_command_under_way_is_use(running: Running, begin: Callable[..., SessionRecord]) -> None:
    record, cancel = begin(Life(idle=60)), threading.Event()
    command = Command(argv=("sleep", "60"))
    thread = threading.Thread(
        target=lambda: run_command(running.core, record, command, emit=lambda *_: None, cancel=cancel)
    )
    thread.start()
    eventually(lambda: running.core.uses.of(record.session.id, record.session.created_at)[0])
    for seconds in (50, 500, 5_000):
        outlive_sessions(later(running, seconds))
        assert now(running, record).session.state is RUNNING
        assert now(running, record).session.foretold is None
    cancel.set()
    thread.join()


def test_the_shortest_of_request_template_and_installation(world: World, tmp_path: Path) -> None:
    world.settings = Settings(life=Life(idle=None, longest=1_000))
    running = world.born().start()
    running.register("web", "web")
    eventually(lambda: _active(running))
    said = {"idle_timeout": 30, "max_life": 5_000}
    create_template(running.core, running.actor, project(running), "work", said)

    def life(**asked: object) -> Life:
        wish = Asked("web", wait_seconds=60, **asked)  # type: ignore[arg-type] # as the rows below say
        record = admit_session(running.core, running.actor, wish).record
        end_session(running.core, running.actor, record.session.id)
        eventually(lambda: now(running, record).session.state in FINAL)
        return record.session.life

    assert life() == Life(None, 1_000)
    assert life(template="work") == Life(30, 1_000)
    assert life(template="work", life=Life(60, 200)) == Life(60, 200), "the request's word is over the Template's"
    assert life(life=Life(None, 2_000)) == Life(None, 1_000), "and the installation's bounds both"


def test_a_life_is_over_even_while_it_waits(running: Running) -> None:
    running.register("web", "web")
    eventually(lambda: _active(running))
    first = [admit_session(running.core, running.actor, Asked("web", wait_seconds=60)).record for _ in range(2)]
    asked = Asked("web", wait_seconds=1_800, life=Life(longest=100))
    record = admit_session(running.core, running.actor, asked).record
    assert record.session.state is SessionState.WAITING, "every slot is taken"
    outlive_sessions(later(running, 76))
    outlive_sessions(later(running, 103))
    assert now(running, record).session.ended_because is EndCause.LIFE_OVER
    assert all(settled(running, it).session.state is RUNNING for it in first)


def test_one_whose_start_never_ends_fails_by_name(running: Running, begin: Callable[..., SessionRecord]) -> None:
    create_template(running.core, running.actor, project(running), "slow", {"setup_commands": sh("sleep 600")})
    record = admit_session(running.core, running.actor, Asked("web", template="slow", wait_seconds=60)).record
    limit = running.core.settings.setup_seconds + SLOW_START.total_seconds()
    outlive_sessions(later(running, limit - 60))
    assert now(running, record).session.state is SessionState.STARTING
    outlive_sessions(later(running, limit + 60))
    failed = now(running, record).session
    assert (failed.state, failed.fault and failed.fault.reason) == (FAILED, Reason.TIMED_OUT)
    eventually(lambda: not running.world.node.sandboxes)


def test_one_whose_node_is_lost_fails_by_name_and_nothing_runs_on(
    running: Running, begin: Callable[..., SessionRecord]
) -> None:
    record = begin()
    away = later(running, LOST.total_seconds() + 200)
    outlive_sessions(away)
    assert now(running, record).session.state is RUNNING, "a Core that has just come cannot know"
    vars(away)["since"] = record.session.created_at
    outlive_sessions(away)
    failed = now(running, record).session
    assert (failed.state, failed.fault and failed.fault.reason) == (FAILED, Reason.NODE_LOST)
    eventually(lambda: not running.world.node.sandboxes)


def test_one_whose_end_never_ends_is_ended_and_its_sandbox_is_stopped_on(
    running: Running, begin: Callable[..., SessionRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = begin()
    with monkeypatch.context() as patched:
        patched.setattr(running.agent, "stop_allocation", lambda _: None)
        end_session(running.core, running.actor, record.session.id)
        outlive_sessions(later(running, SLOW_END.total_seconds() - 60))
        assert now(running, record).session.state is ENDING
        outlive_sessions(later(running, SLOW_END.total_seconds() + 60))
        ended = now(running, record)
        assert (ended.session.state, ended.session.ended_because) == (ENDED, EndCause.ASKED)
        assert ended.allocation is not None
        assert ended.allocation.state is AllocationState.STOPPING
    eventually(lambda: not running.world.node.sandboxes)
    eventually(lambda: (it := now(running, record).allocation) is not None and it.state is AllocationState.CLOSED)
