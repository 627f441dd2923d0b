"""What a proof or a report means for a release: every state, every kind of contract, every report."""

from itertools import product

import pytest

from sandbay.domain.contract import Contract, ContractReport, ToolReport, Violation
from sandbay.domain.reasons import Reason
from sandbay.domain.release import RELEASE_MOVES, Fault, ReleaseState, ReleaseStatus
from sandbay.flow.prove import asked_again, ready, reported, violation_of

TOOLS = {"node": "node --version", "git": "git --version"}
GOOD = ToolReport("node --version", "/bin/node", 0, "v22.3.0", "22.3.0")
BAD = ToolReport("git --version", None, 127, "not found", None, Violation.NOT_FOUND)
KEPT = ContractReport(boots=True, tools={"node": GOOD})
BROKEN = ContractReport(boots=True, tools={"node": GOOD, "git": BAD})
NO_BOOT = ContractReport(boots=False, fault=Fault(Reason.USER_NOT_FOUND, "no such user"))
OF_BYTES = Fault(Reason.MALFORMED_LAYER, "no tar")
OF_TOOLS = violation_of(BROKEN)


@pytest.mark.parametrize("state, tools", list(product(ReleaseState, [{}, TOOLS])), ids=str)
def test_a_start_alone_proves_what_promises_nothing(state: ReleaseState, tools: dict[str, str]) -> None:
    verdict = ready(ReleaseStatus(state), Contract(tools, 1))
    assert (verdict is not None) is (state is ReleaseState.PENDING and not tools)
    assert verdict is None or (verdict.to, verdict.fault) == (ReleaseState.ACTIVE, None)


@pytest.mark.parametrize("report", [KEPT, BROKEN, NO_BOOT], ids=["kept", "broken", "no boot"])
@pytest.mark.parametrize("state, tools", list(product(ReleaseState, [{}, TOOLS])), ids=str)
def test_a_report_decides_what_waits_for_it_and_nothing_else(
    state: ReleaseState, tools: dict[str, str], report: ContractReport
) -> None:
    verdict = reported(ReleaseStatus(state), Contract(tools, 1), report)
    if state is not ReleaseState.PENDING or not tools:
        assert verdict is None
        return
    assert verdict is not None
    assert verdict.to in RELEASE_MOVES[state]
    assert verdict.to is (ReleaseState.ACTIVE if report is KEPT else ReleaseState.REJECTED)
    assert (verdict.fault is None) is (report is KEPT)


@pytest.mark.parametrize("state, fault", list(product(ReleaseState, [None, OF_BYTES, OF_TOOLS])), ids=str)
def test_only_a_rejection_that_spoke_of_tools_is_open_again(state: ReleaseState, fault: Fault | None) -> None:
    verdict = asked_again(ReleaseStatus(state, fault))
    assert (verdict is not None) is (state is ReleaseState.REJECTED and fault is OF_TOOLS)
    assert verdict is None or (verdict.to, verdict.fault) == (ReleaseState.PENDING, None)


def test_a_violation_names_the_tools_at_fault_and_what_they_did() -> None:
    assert OF_TOOLS.reason is Reason.CONTRACT_VIOLATED
    told = {"violation": "not_found", "command": "git --version", "exit": 127, "path": None, "printed": "not found"}
    assert OF_TOOLS.details == {"tools": {"git": told}}
    assert "git" in OF_TOOLS.message
    assert "node" not in OF_TOOLS.message
    cause = violation_of(NO_BOOT).details
    assert cause == {"cause": {"code": "user_not_found", "message": "no such user"}, "tools": {}}
