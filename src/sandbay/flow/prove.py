"""What a proof on a node, or a report of a check, means for a release.

    pending ─ready on a node, nothing promised▶ active
    pending ─report: contract kept▶ active          pending ─report: violated▶ rejected(contract_violated)
    rejected(contract_violated) ─asked to be checked again▶ pending

A release that is in use stays what it is, whatever a later check says: Sessions, channels and rollback rely on it. The
newest report says which of its tools are verified. A rejection for verified bytes is for ever.
"""

from dataclasses import dataclass

from sandbay.domain.contract import Contract, ContractReport
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault, ReleaseState, ReleaseStatus


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where the release moves; the fault when it is rejected."""

    to: ReleaseState
    fault: Fault | None = None


def ready(status: ReleaseStatus, contract: Contract) -> Verdict | None:
    """A node has proved a variant. What promises tools has to be checked first."""
    proved = status.state is ReleaseState.PENDING and not contract.tools
    return Verdict(ReleaseState.ACTIVE) if proved else None


def reported(status: ReleaseStatus, contract: Contract, report: ContractReport) -> Verdict | None:
    """A check was answered."""
    if status.state is not ReleaseState.PENDING or not contract.tools:
        return None
    return Verdict(ReleaseState.ACTIVE) if report.kept else Verdict(ReleaseState.REJECTED, violation_of(report))


def asked_again(status: ReleaseStatus) -> Verdict | None:
    """Somebody wants a check, perhaps of other tools: a rejection that spoke of tools is open again."""
    fault = status.fault
    lifts = status.state is ReleaseState.REJECTED and fault is not None and fault.reason is Reason.CONTRACT_VIOLATED
    return Verdict(ReleaseState.PENDING) if lifts else None


def violation_of(report: ContractReport) -> Fault:
    """What is wrong, with the tools at fault as they were seen."""
    if report.fault is not None:
        cause = {"code": report.fault.reason.value, "message": report.fault.message}
        message = f"a sandbox of it does not boot as its config says: {report.fault.message}"
        return Fault(Reason.CONTRACT_VIOLATED, message, {"cause": cause, "tools": {}})
    wrong = report.violations
    tools = {
        name: {
            "violation": violation.value,
            "command": (it := report.tools[name]).command,
            "exit": it.exit,
            "path": it.path,
            "printed": it.printed,
        }
        for name, violation in wrong.items()
    }
    listed = ", ".join(f"{name} ({violation.value})" for name, violation in wrong.items())
    return Fault(Reason.CONTRACT_VIOLATED, f"tools are not what the contract says: {listed}", {"tools": tools})
