"""How a "no" looks on the command line, and what to do next. `cli.main.run` is the only caller."""

import json
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from sandbay.cli.render import clean

REFUSED = 125
"""The exit code of everything that this side or the installation refuses, or that fails by name."""


class Named(Protocol):
    """What can be reported: the errors of the SDK, and `CommandError`."""

    code: str
    message: str

    def envelope(self) -> Mapping[str, Any]:
        """The error as JSON."""


class CommandError(Exception):
    """A command of this side cannot do its work. `next_step` is one sentence for people."""

    def __init__(
        self, code: str, message: str, *, next_step: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        """`code` is a reason's, or one of this side's own."""
        super().__init__(message)
        self.code, self.message, self.next_step = code, message, next_step
        self.details = dict(details or {})

    def envelope(self) -> Mapping[str, Any]:
        """As an installation would send it."""
        return {
            "error": {
                "type": "invalid_request_error",
                "code": self.code,
                "message": self.message,
                "param": None,
                "details": self.details,
                "request_id": None,
            }
        }


_NEXT = {
    "invalid_body": "See what is taken: the same command with --help",
    "image_unknown": "See what there is: sandbay images ls",
    "channel_unknown": "See its channels: sandbay images inspect NAME",
    "release_unknown": "See its releases: sandbay images inspect NAME",
    "invalid_reference": "Write NAME, NAME:CHANNEL, NAME:NUMBER or NAME@sha256:…; of a registry HOST/PATH[:TAG]",
    "not_found": "See what there is: ls of the same kind, as sandbay sessions ls",
    "secret_unknown": "See what there is: sandbay secrets ls; put it: sandbay secrets set NAME",
    "scope_unknown": "See what there is: sandbay scopes ls",
    "template_unknown": "See what there is: sandbay templates ls",
    "image_retired": "Choose another image: sandbay images ls",
    "release_retired": "Choose another release: sandbay images inspect NAME",
    "release_pending": "Watch it: sandbay images readiness NAME",
    "release_rejected": "Register a release without the fault; details: sandbay images inspect NAME",
    "no_default_image": "Name one: --image NAME, or have an administrator set a default",
    "image_unsupported": "See which pools there are: sandbay deployment show",
    "image_not_ready": "Wait for it (--wait 1800), or fetch it ahead: sandbay images preload NAME",
    "no_capacity": "Wait for a place (--wait 1800), or end Sessions: sandbay sessions rm ID",
    "no_node_online": "Start a node, or on this machine: sandbay up --detach",
    "wait_expired": "Wait longer (--wait S), or see why: sandbay images readiness NAME",
    "image_prepare_failed": "See what the nodes say: sandbay images readiness NAME",
    "no_command": "Say what to run after --",
    "no_shell": "Run a program instead of a shell line, after --",
    "timed_out": "Allow it more time: --timeout S",
    "already_ended": "Start another one: sandbay sessions create --image NAME",
    "network_unsupported": "Ask for a mode that is offered, or see what the node's host lacks for it: sandbay doctor",
    "not_running": "See how it is: sandbay sessions get ID",
    "not_suspended": "See how it is: sandbay sessions get ID",
    "snapshot_node_offline": "Wait until its node is back: sandbay nodes ls",
    "image_lost": "Its release is gone: end it, or have an administrator bring the same bytes back",
    "name_taken": "Choose another name.",
    "invalid_api_key": "Check SANDBAY_API_KEY and SANDBAY_ADMIN_KEY, or start here: sandbay up --detach",
    "registry_unreachable": "Check the registry; without TLS it must stand in the server's SANDBAY_PLAIN_REGISTRIES",
    "unauthorized_or_missing": "Check the name, or give the installation credentials: sandbay registries login HOST",
    "source_forbidden": "Check what these credentials may do: sandbay registries login HOST",
    "rate_limited": "Come again later, or with credentials: sandbay registries login HOST",
    "stalled": "Try again; what has arrived whole is not fetched again",
    "unreachable": "Start an installation on this machine: sandbay up --detach",
    "no_context": "Start an installation on this machine: sandbay up --detach, or set SANDBAY_URL and SANDBAY_API_KEY",
    "connection_lost": "Whether it was done is unknown; look before you try again.",
    "host_unfit": "See what is missing: sandbay doctor",
    "database_unavailable": "It passes when the database is back; look first whether a change was made.",
    "requirements_unmet": "Choose a release that has the tools: sandbay images inspect NAME; all of it: --json",
    "no_space": "Make room, for example: sandbay images evict NAME",
    "internal": "Look into the server's log; the request's id is in --json.",
}
_OTHERWISE = "More of it: the same command with --json"


def report(error: Named, *, as_json: bool) -> None:
    """Say it on standard error: one envelope, or one line and another on what to do next."""
    if as_json:
        print(json.dumps(error.envelope(), indent=2), file=sys.stderr)
        return
    own = error.next_step if isinstance(error, CommandError) else ""
    where = clean(f"{getattr(error, 'param', None) or ''}: ") if error.code == "invalid_body" else ""
    print(f"sandbay: {where}{clean(error.message)} ({clean(error.code)})", file=sys.stderr)
    details = error.envelope()["error"]["details"]
    for it in details.get("lost", ()):
        print(f"  {clean(_loses(it))}", file=sys.stderr)
    following = own or _NEXT.get(error.code) or (_OTHERWISE if details else "")
    if following:
        print(f"  {following}", file=sys.stderr)


def _loses(it: Mapping[str, Any]) -> str:
    """One that would have no image any more: `template work of growth has web:1: node>=20 (18.2)`."""
    tools = [f"{one.get('tool')}{_wanted(one)} ({one.get('found') or 'none'})" for one in it.get("unmet", ())]
    whose = f" of {it.get('project')}" if it.get("project") and it.get("kind") != "project" else ""
    why = ", ".join(tools) or it.get("reason")
    return f"{it.get('kind')} {it.get('name')}{whose} has {it.get('has')}: {why}"


def _wanted(unmet: Mapping[str, Any]) -> str:
    return "" if unmet.get("wanted") == "any" else str(unmet.get("wanted"))
