"""Whether an export of the audit is what the installation wrote: every line holds the digest of the one before."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.errors import SandbayError, of_reason

FORMAT = "sandbay-audit/1"


@dataclass(frozen=True, slots=True)
class WholeAudit:
    """An export with nothing altered. `head` is the digest of its last line: whoever has it elsewhere knows more."""

    entries: int
    head: str


def verify_audit(lines: Iterable[bytes]) -> WholeAudit:
    """Read an export. Raises `ContentError` (digest_mismatch) at the first line that does not hold.

    `details`: the line, from 1, and the fault: `foreign`, `out_of_order`, `altered`, `cut_off` or `added`.
    """
    number, count, previous, ended = 0, 0, b"", False
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix(b"\n")
        if ended:
            raise _broken(number, "added", "something was added after its end")
        said = _read(line, number)
        if number == 1:
            if said != {"format": FORMAT}:
                raise _broken(1, "foreign", f"it does not begin as {FORMAT}")
        else:
            ended = "end" in said
            _check(said, number, count if ended else count + 1, previous)
            count += not ended
        previous = line
    if not ended:
        raise _broken(number, "cut_off", f"it has no end: lines after entry {count} were cut off")
    return WholeAudit(count, _digest(previous))


def _read(line: bytes, number: int) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise _broken(number, "foreign", "it is no line of an audit")
    return said


def _check(said: dict[str, Any], number: int, expected: int, previous: bytes) -> None:
    names = {"end", "previous"} if "end" in said else {"entry", "n", "previous"}
    if set(said) != names:
        raise _broken(number, "foreign", "it is no line of an audit")
    place = said.get("end", said.get("n"))
    if place != expected:
        what = f"entry {expected} belongs here, not {place}: lines were taken out, put in or moved"
        raise _broken(number, "out_of_order", what)
    if said["previous"] != _digest(previous):
        raise _broken(number, "altered", f"it does not follow line {number - 1}: one of the two was altered")


def _digest(line: bytes) -> str:
    return "sha256:" + hashlib.sha256(line).hexdigest()


def _broken(number: int, fault: str, what: str) -> SandbayError:
    details = {"line": number, "fault": fault}
    return of_reason({"code": "digest_mismatch", "message": f"line {number}: {what}", "details": details})
