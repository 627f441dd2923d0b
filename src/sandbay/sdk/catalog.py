"""What may be said of a release, and what the nodes say of it, whichever client asks."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from sandbay.sdk.resources import Progress, Readiness

STABLE = "stable"


class Asked(TypedDict, total=False):
    """What may be said of a release beside where it comes from.

    `platforms` and `providers` narrow it down; `source_commit` tells what it was built from; `promote` names the
    channel that points to it once a node has proved it. `artifacts` state what is known of it under the names that
    providers declare; what is computed from the bytes has to be the same. `tools` are promised, name → the command that
    prints the version, and checked in a real sandbox before the release is active.
    """

    platforms: Sequence[str]
    providers: Sequence[str]
    source_commit: str | None
    promote: str | None
    artifacts: Mapping[str, str]
    tools: Mapping[str, str] | None


def prepare_failed(reference: str, held: Sequence[Readiness]) -> dict[str, Any]:
    """The reason when no node is left that could prepare a release."""
    nodes = [{"node": line.node, "fault": line.raw.get("fault")} for line in held]
    message = f"every node that could run {reference} failed to prepare it"
    return {"code": "image_prepare_failed", "message": message, "details": {"nodes": nodes}}


def summed(readiness: Sequence[Readiness]) -> Progress:
    """The nodes' progress as one, for a bar."""
    busy = [line for line in readiness if line.state in {"queued", "pulling", "verifying"}]
    total = sum(line.bytes_total for line in busy)
    idle = "checking tools" if any(line.state == "ready" for line in readiness) else "waiting for a node"
    phase = ", ".join(dict.fromkeys(line.state for line in busy)) or idle
    return Progress(phase, sum(line.bytes_done for line in busy), total or None)
