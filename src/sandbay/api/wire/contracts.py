"""What releases promise of their tools, and what checks saw."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from sandbay.api.wire.base import NO_NUL, Failure, Listing, Out, failure_of
from sandbay.domain.catalog import ReleaseEntry
from sandbay.domain.contract import MAX_TOOLS, Checked, ContractReport, ToolReport, Violation, argv_of_tool
from sandbay.domain.release import Fault
from sandbay.domain.requirement import TOOL_NAME, Tools
from sandbay.ports.records import ReportRow


def _command(text: str) -> str:
    try:
        argv_of_tool(text)
    except ValueError as error:
        raise ValueError(f"it is no command: {error}") from error
    return text


ToolName = Annotated[str, Field(pattern=f"^{TOOL_NAME}$")]
ToolCommands = Annotated[
    dict[ToolName, Annotated[str, Field(min_length=1, max_length=1024, pattern=NO_NUL), AfterValidator(_command)]],
    Field(max_length=MAX_TOOLS),
]
"""Tool → the command that prints its version. No shell reads it; `sh -c '…'` asks for one."""

ToolVersions = dict[str, str] | Literal["unverified"]
"""Verified tools: name → version."""


class ContractState(StrEnum):
    """`unverified`: nobody has looked; `due`: a check is under way."""

    UNVERIFIED = "unverified"
    DUE = "due"
    KEPT = "kept"
    VIOLATED = "violated"


class ToolReportOut(Out):
    """What one tool's command did."""

    command: str = Field(description="What was run; no shell read it.")
    path: str | None = Field(description="The program on the image's PATH.")
    exit: int | None = Field(description="Its exit code; null when it was stopped.")
    printed: str = Field(description="The line that says the version, without what a terminal would obey.")
    version: str | None = Field(description="The version, as PEP 440 writes it.")
    violation: Violation | None = Field(description="What is wrong with it.")


class ReportOut(Out):
    """What one check saw in a real sandbox."""

    number: int = Field(description="Which check of the release it was.")
    at: datetime = Field(description="When.")
    kept: bool = Field(description="Whether the image is what it promises.")
    boots: bool = Field(description="Whether a sandbox starts as the image's config says.")
    fault: Failure | None = Field(description="Why it does not.")
    shell: bool = Field(description="Whether there is a /bin/sh.")
    user: str = Field(description="The image's user.")
    uid: int = Field(description="The user's id inside.")
    gid: int = Field(description="The group's id inside.")
    home: str = Field(description="The user's home.")
    workdir: str = Field(description="Where commands begin.")
    tools: dict[str, ToolReportOut] = Field(description="Tool → what its command did.")


class NodeReportOut(ReportOut):
    """The same, with where it was seen."""

    platform: str = Field(description="The variant's platform.")
    node: str = Field(description="The id of the node.")


class ReportList(Listing[NodeReportOut]):
    """Newest first."""


class ContractOut(Out):
    """What a release promises."""

    state: ContractState = Field(description="As the newest report has it.")
    tools: dict[str, str] = Field(description="Tool → the command that prints its version.")
    checks: int = Field(description="How many checks were asked for.")
    trouble: Failure | None = Field(description="Why the last try of the check that is due saw nothing yet.")


def versions_out(tools: Tools) -> ToolVersions:
    """From the domain."""
    return dict(tools) if tools else "unverified"


def _tool(it: ToolReport) -> ToolReportOut:
    return ToolReportOut(
        command=it.command,
        path=it.path,
        exit=it.exit,
        printed=it.printed,
        version=it.version,
        violation=it.violation,
    )


def report_out(checked: Checked) -> ReportOut:
    """From the domain."""
    report: ContractReport = checked.report
    return ReportOut(
        number=checked.number,
        at=checked.at,
        kept=report.kept,
        boots=report.boots,
        fault=failure_of(report.fault),
        shell=report.shell,
        user=report.user,
        uid=report.uid,
        gid=report.gid,
        home=report.home,
        workdir=report.workdir,
        tools={name: _tool(it) for name, it in report.tools.items()},
    )


def node_report_out(row: ReportRow, held: ReleaseEntry) -> NodeReportOut:
    """From the store's row."""
    platform = next(str(v.platform) for v in held.release.variants if v.content_key == row.key)
    return NodeReportOut(**dict(report_out(row.checked)), platform=platform, node=row.node)


def contract_out(held: ReleaseEntry, trouble: Fault | None) -> ContractOut:
    """From the domain; `trouble` is why the last try saw nothing."""
    contract = held.contract
    return ContractOut(
        state=_state(held), tools=dict(contract.tools), checks=contract.checks, trouble=failure_of(trouble)
    )


def _state(held: ReleaseEntry) -> ContractState:
    """A variant that no node here runs is never checked, and holds nothing up."""
    if held.release.variants and all(held.is_due(variant) for variant in held.release.variants):
        return ContractState.DUE
    if not held.checked:
        return ContractState.UNVERIFIED
    kept = all(checked.report.kept for checked in held.checked.values())
    return ContractState.KEPT if kept else ContractState.VIOLATED
