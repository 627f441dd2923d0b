"""May it be suspended, may it be resumed and where: every state, every readiness, and what answers first."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sandbay.domain.declaration import Ability
from sandbay.domain.deployment import Pool, PoolAdmission, SandboxSize
from sandbay.domain.errors import Refusal
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import ImageId, NodeId, ReleaseId
from sandbay.domain.node import Node, NodeView
from sandbay.domain.placement import Placed
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import MANIFEST_DIGEST, Artifact, Fault, Known
from sandbay.domain.session import SessionState
from sandbay.domain.trail import DecidedBy, Level
from sandbay.flow.resume import Resume, Suspended, resume
from sandbay.flow.suspend import Suspend, suspend
from tests.flow.worlds import AMD, ARM, NOW, sha, some_id

S = SessionState
CAN = frozenset({Ability.SUSPEND, Ability.EXEC})


def answer(outcome: object) -> object:
    """The reason of a refusal, else the outcome itself."""
    return outcome.reason if isinstance(outcome, Refusal) else outcome


TO_SUSPEND = {
    S.WAITING: Reason.NOT_RUNNING,
    S.STARTING: Reason.NOT_RUNNING,
    S.RUNNING: Suspend.BEGIN,
    S.SUSPENDING: Suspend.NOTHING,
    S.SUSPENDED: Suspend.NOTHING,
    S.RESUMING: Reason.NOT_RUNNING,
    S.ENDING: Reason.ALREADY_ENDED,
    S.ENDED: Reason.ALREADY_ENDED,
    S.FAILED: Reason.ALREADY_ENDED,
}


@pytest.mark.parametrize("state", S)
def test_every_state_when_it_is_to_be_suspended(state: SessionState) -> None:
    outcome = suspend(state, CAN, online=True)
    assert answer(outcome) == TO_SUSPEND[state]
    if isinstance(outcome, Refusal):
        assert outcome.details == {"status": state.value}


def test_what_is_suspended_already_needs_no_node_and_no_ability() -> None:
    assert suspend(S.SUSPENDED, (), online=False) is Suspend.NOTHING


def test_an_ability_that_the_provider_lacks_is_told_before_its_node_is_looked_at() -> None:
    refused = suspend(S.RUNNING, {Ability.EXEC}, online=False)
    assert answer(refused) is Reason.ABILITY_UNSUPPORTED
    assert isinstance(refused, Refusal)
    assert refused.details == {"abilities": ["exec"]}
    assert answer(suspend(S.RUNNING, CAN, online=False)) is Reason.NO_NODE_ONLINE


def frozen(*providers: str) -> FrozenRelease:
    return FrozenRelease(
        image=ImageId(some_id("img", 3)),
        image_name="web",
        reference="web",
        release=ReleaseId(some_id("rel", 7)),
        number=7,
        platform=AMD,
        artifacts={MANIFEST_DIGEST: Artifact(sha(1), Known.COMPUTED)},
        providers=providers or ("oci",),
        digest=sha(1),
        index_digest=None,
        source_commit=None,
        size=10,
        generation=1,
        decided_by=DecidedBy(Level.SESSION),
        trail=(),
    )


def node() -> Node:
    return Node(NodeId("node_a"), "a", "oci", "r", AMD, 4, {"zone": "a"}, warm=True)


READY = Readiness(ReadinessState.READY, wanted=True, attempt=1)
MAIN = Pool("main", "oci", AMD)


def holder(readiness: Readiness = READY, *, active: int = 0, online: bool = True, warm: bool = True) -> NodeView:
    return NodeView(replace(node(), warm=warm), online=online, active=active, readiness=readiness)


def suspended(on: NodeView | None = None, state: SessionState = S.SUSPENDED, **more: object) -> Suspended:
    it = Suspended(state, frozen(), SandboxSize(0.5, 2**20, 8), on if on is not None else holder())
    return replace(it, **more)  # type: ignore[arg-type] # as the caller says


HERE = Placed(node().id, "main", node().slots)
TO_RESUME = {
    S.WAITING: Reason.NOT_SUSPENDED,
    S.STARTING: Reason.NOT_SUSPENDED,
    S.RUNNING: Resume.NOTHING,
    S.SUSPENDING: Reason.NOT_SUSPENDED,
    S.SUSPENDED: HERE,
    S.RESUMING: Resume.NOTHING,
    S.ENDING: Reason.ALREADY_ENDED,
    S.ENDED: Reason.ALREADY_ENDED,
    S.FAILED: Reason.ALREADY_ENDED,
}


@pytest.mark.parametrize("state", S)
def test_every_state_when_it_is_to_be_resumed(state: SessionState) -> None:
    outcome = resume(suspended(state=state), [MAIN])
    assert answer(outcome) == TO_RESUME[state]
    if isinstance(outcome, Refusal):
        assert outcome.details == {"status": state.value}


def failed(reason: Reason | None, *, again: bool = False) -> Readiness:
    fault = None if reason is None else Fault(reason, "it broke")
    return Readiness(
        ReadinessState.FAILED, attempt=1, fault=fault, retry_at=NOW + timedelta(minutes=1) if again else None
    )


@pytest.mark.parametrize(
    "cell, reason",
    [
        *(
            (Readiness(state), Reason.IMAGE_NOT_READY)
            for state in sorted(set(ReadinessState) - {ReadinessState.READY, ReadinessState.FAILED})
        ),
        (failed(Reason.BLOB_MISSING), Reason.IMAGE_LOST),
        (failed(Reason.CONTENT_LOST), Reason.IMAGE_LOST),
        (failed(Reason.NO_SPACE), Reason.IMAGE_PREPARE_FAILED),
        (failed(None), Reason.IMAGE_PREPARE_FAILED),
        (failed(Reason.BLOB_MISSING, again=True), Reason.IMAGE_NOT_READY),
    ],
)
def test_a_release_that_is_not_there_is_told_as_it_is_and_is_never_another_one(cell: Readiness, reason: Reason) -> None:
    refused = resume(suspended(holder(cell)), [MAIN])
    assert answer(refused) is reason
    assert isinstance(refused, Refusal)
    if cell.fault is not None and cell.retry_at is None:
        assert refused.details == {"last": cell.fault.reason.value}


def test_only_the_node_that_keeps_it_is_looked_at() -> None:
    assert answer(resume(suspended(holder(online=False)), [MAIN])) is Reason.SNAPSHOT_NODE_OFFLINE
    assert answer(resume(replace(suspended(), holder=None), [MAIN])) is Reason.SNAPSHOT_NODE_OFFLINE
    assert answer(resume(suspended(holder(warm=False)), [MAIN])) is Reason.IMAGE_NOT_READY
    assert answer(resume(suspended(holder(active=4)), [MAIN])) is Reason.NO_CAPACITY
    assert resume(suspended(holder(active=3)), [MAIN]) == HERE


def test_the_first_pool_that_can_run_it_there_takes_it() -> None:
    others = [
        replace(MAIN, name="elsewhere", node_selector={"zone": "b"}),
        replace(MAIN, name="small", size=SandboxSize(0.1, 1, 1)),
        replace(MAIN, name="paused", admission=PoolAdmission.PAUSED),
        replace(MAIN, name="arm", platform=ARM),
        replace(MAIN, name="other", provider="other"),
    ]
    assert resume(suspended(), [*others, MAIN, replace(MAIN, name="last")]) == HERE
    assert answer(resume(suspended(), others[:1])) is Reason.IMAGE_UNSUPPORTED
    assert answer(resume(suspended(), others[3:])) is Reason.IMAGE_UNSUPPORTED
    assert answer(resume(suspended(), others[:2])) is Reason.RESOURCE_UNSUPPORTED
    assert answer(resume(suspended(), others)) is Reason.POOL_PAUSED


def test_a_provider_that_its_release_is_not_for_takes_it_nowhere() -> None:
    release = frozen("other")
    assert answer(resume(suspended(frozen=release), [MAIN])) is Reason.IMAGE_UNSUPPORTED
    foreign = replace(suspended().frozen, platform=ARM)
    assert answer(resume(suspended(frozen=foreign), [MAIN])) is Reason.IMAGE_UNSUPPORTED
