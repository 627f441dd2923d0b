"""Gated promotions at work: kill -9 at each durable step, Core away, two at once. Existing Sessions never move."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbay.app.admit_session import Asked, admit_session
from sandbay.app.channels import Move, promote, roll_back, view_channel
from sandbay.app.core import SYSTEM
from sandbay.app.images import change_release, find_image, find_release
from sandbay.app.promotions import Gate, PromotionState, abort, begin, find_promotion, list_promotions
from sandbay.app.reconcile import reconcile
from sandbay.app.sessions import find_session
from sandbay.app.templates import create_template
from sandbay.domain.errors import RefusedError
from sandbay.domain.promotion import PromotionOutcome
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ReleaseState
from sandbay.ports.records import Page
from tests.app.world import KilledError, Life, Running, World, eventually

SOON, NEVER = Gate(1, timedelta(minutes=5)), Gate(99, timedelta(minutes=5))
SETTLED, FAILED, ABORTED = PromotionOutcome.SETTLED, PromotionOutcome.FAILED, PromotionOutcome.ABORTED


def active(running: Running, number: int) -> bool:
    if running.life.dead.is_set():
        raise KilledError
    return find_release(find_image(running.core, "web"), number).status.state is ReleaseState.ACTIVE


def two_releases(running: Running) -> None:
    """`web` with `stable` at the first of two, and another image that is the default beside it."""
    for name, content in (("usual", "usual"), ("web", "one"), ("web", "two")):
        running.register(name, content)
    eventually(lambda: active(running, 1) and active(running, 2))


def stable(running: Running) -> int:
    return view_channel(running.core, "web", "stable").channel.number


def outcome(running: Running, it: PromotionState) -> Any:
    return find_promotion(running.core, "web", it.promotion.id).promotion.outcome


@pytest.fixture
def prepared(running: Running) -> Running:
    two_releases(running)
    return running


def test_it_settles_with_history_and_sessions_stay(prepared: Running) -> None:
    core = prepared.core
    session = admit_session(core, prepared.actor, Asked("web", wait_seconds=60)).record
    it = begin(core, SYSTEM, "web", Move("stable", 2, why="faster"), SOON)
    eventually(lambda: outcome(prepared, it) is SETTLED)
    view = view_channel(core, "web", "stable")
    assert (view.channel.number, view.channel.revision, view.previous) == (2, 2, 1)
    again = find_session(core, session.session.id, prepared.actor.project)
    assert (again.frozen.number, again.frozen.document_digest) == (1, session.frozen.document_digest)
    assert admit_session(core, prepared.actor, Asked("web", wait_seconds=60)).record.frozen.number == 2
    assert roll_back(core, SYSTEM, "web", "stable").channel.number == 1


def test_a_channel_has_one_under_way(prepared: Running) -> None:
    core = prepared.core
    it = begin(core, SYSTEM, "web", Move("stable", 2), NEVER)
    with pytest.raises(RefusedError) as refused:
        begin(core, SYSTEM, "web", Move("stable", 2), SOON)
    assert refused.value.refusal.reason is Reason.IN_USE
    assert refused.value.refusal.details == {"by": [it.promotion.id]}
    other = begin(core, SYSTEM, "web", Move("canary", 2), SOON)
    eventually(lambda: outcome(prepared, other) is SETTLED)
    assert [i.promotion.id for i in list_promotions(core, "web", Page())] == [other.promotion.id, it.promotion.id]
    assert abort(core, SYSTEM, "web", it.promotion.id).promotion.outcome is ABORTED
    assert abort(core, SYSTEM, "web", it.promotion.id).promotion.outcome is ABORTED
    with pytest.raises(RefusedError) as refused:
        abort(core, SYSTEM, "web", other.promotion.id)
    assert refused.value.refusal.reason is Reason.ALREADY_ENDED
    assert stable(prepared) == 1


@pytest.mark.parametrize("how", ["moved", "retired"])
def test_what_it_began_with_has_to_hold_to_the_end(prepared: Running, how: str) -> None:
    core = prepared.core
    it = begin(core, SYSTEM, "web", Move("stable", 2), NEVER)
    if how == "moved":
        promote(core, SYSTEM, "web", Move("stable", 1))
    else:
        change_release(core, SYSTEM, "web", 2, ReleaseState.RETIRED)
    eventually(lambda: outcome(prepared, it) is FAILED)
    fault = find_promotion(core, "web", it.promotion.id).promotion.fault
    assert fault is not None
    assert fault.reason is (Reason.REVISION_STALE if how == "moved" else Reason.RELEASE_RETIRED)
    assert stable(prepared) == 1


def test_the_deadline_passes_while_core_is_down(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    running = world.born().start()
    two_releases(running)
    running.close()
    it = begin(running.core, SYSTEM, "web", Move("stable", 2), SOON)
    back = world.born()
    later = it.promotion.deadline
    monkeypatch.setattr(back.core.clock, "now", lambda: later)
    reconcile(back.core)
    ended = find_promotion(back.core, "web", it.promotion.id).promotion
    assert (ended.outcome, ended.fault and ended.fault.reason) == (FAILED, Reason.WAIT_EXPIRED)
    assert stable(back) == 1


def test_two_cores_that_settle_at_once_move_it_once(prepared: Running) -> None:
    prepared.close()
    it = begin(prepared.core, SYSTEM, "web", Move("stable", 2), SOON)
    other = prepared.world.born()
    for core in (prepared.core, other.core, prepared.core):
        reconcile(core)
    assert outcome(prepared, it) is SETTLED
    assert view_channel(prepared.core, "web", "stable").channel.revision == 2


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_step_leaves_it_settled_or_unmoved(tmp_path: Path, *, after: bool) -> None:
    for step in range(1, 9):
        world = World(tmp_path / str(step))
        try:
            if killed_at(world, step, after=after) is None:
                assert step > 2, "the story no longer reaches what it is about"
                return
        finally:
            world.close()
    raise AssertionError("it takes more steps than this knows")


def killed_at(world: World, step: int, *, after: bool) -> int | None:
    """The step that it died at, if it did; judged is what the next process makes of it."""
    first = world.born().start()
    two_releases(first)
    first.close()
    life = Life(step, after=after)
    dying = world.born(life)
    try:
        begin(dying.core, SYSTEM, "web", Move("stable", 2), SOON)
        reconcile(dying.core)
    except KilledError:
        pass
    now = world.born()
    waiting = list_promotions(now.core, "web", Page())
    settled = [it for it in waiting if it.promotion.outcome is SETTLED]
    assert stable(now) == (2 if settled else 1), "moved, and nobody says so; or the other way round"
    assert view_channel(now.core, "web", "stable").channel.revision == (2 if settled else 1)
    if waiting:
        reconcile(now.core)
        assert outcome(now, waiting[0]) is SETTLED
        assert stable(now) == 2
    return step if life.dead.is_set() else None


def test_who_never_hears_of_a_node_waits(world: World) -> None:
    running = world.born().start()
    two_releases(running)
    running.close()
    core = running.core
    it = begin(core, SYSTEM, "web", Move("stable", 2), Gate(None, timedelta(hours=1)))
    away: datetime = core.clock.now() + timedelta(minutes=10)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(core.clock, "now", lambda: away)
        reconcile(core)
        assert outcome(running, it) is None
    assert stable(running) == 1


@pytest.mark.parametrize("force", [False, True])
def test_a_template_written_while_it_waits_counts_when_it_settles(world: World, *, force: bool) -> None:
    running = world.born().start()
    for content, version in (("one", "20.1"), ("two", "22.0")):
        running.register("web", content, tools={"node": f"echo node {version}"})
    eventually(lambda: active(running, 1) and active(running, 2))
    running.close()
    core, project = running.core, running.actor.project
    assert project is not None
    it = begin(core, SYSTEM, "web", Move("stable", 2, force=force), SOON)
    said = {"runtime_image_id": "web", "requires": ("node==20.1",)}
    create_template(core, running.actor, project, "exact", said)
    reconcile(core)
    ended = find_promotion(core, "web", it.promotion.id).promotion
    if force:
        assert (ended.outcome, stable(running)) == (SETTLED, 2)
    else:
        assert (ended.outcome, stable(running)) == (FAILED, 1)
        assert ended.fault is not None
        assert ended.fault.reason is Reason.REQUIREMENTS_UNMET
        assert ended.fault.details["count"] == 1
