"""Which field of this request is at fault, or whose standing word."""

from collections.abc import Iterable, Mapping

from sandbay.domain.binding import Mode
from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason
from sandbay.domain.requirement import UNKNOWN, Required, Unmet, unmet
from sandbay.domain.trail import EXPLICIT, Level, Saying
from sandbay.flow.resolve.chain import Candidate

_IN_REQUEST = {Level.SESSION: "runtime_image_id", Level.TEMPLATE: "template"}
_REQUIRED_IN = {Level.SESSION: "requires", Level.TEMPLATE: "template"}


def blamed(refusal: Refusal, by: Saying) -> Refusal:
    """Point at the field of this request that is at fault, or at whose standing word it was."""
    field = {"field": "runtime_image_id"} if by.level is Level.TEMPLATE else {}
    facts = {"reference": by.reference, **field, **refusal.details}
    if by.level is not Level.SESSION:
        facts |= {"level": by.level.value, "subject": by.subject}
    if _is_binding(by):
        facts |= {"binding": told_binding(by)}
    return Refusal(refusal.reason, refusal.message, _IN_REQUEST.get(by.level), facts)


def _is_binding(by: Saying) -> bool:
    """What stands is a binding, but for the deployment's preference: that is its default image."""
    return by.level not in EXPLICIT and (by.enforced or by.level is not Level.DEPLOYMENT)


def told_binding(by: Saying) -> Mapping[str, object]:
    """Which binding it is, for whoever has to change it."""
    mode = Mode.ENFORCE if by.enforced else Mode.PREFER
    return {"level": by.level.value, "subject": by.subject, "mode": mode.value, "reference": by.reference}


def sufficient(found: Candidate, by: Saying, required: Iterable[Required]) -> Candidate | Refusal:
    """The last check: every tool that is required is verified, in a version that will do.

    At fault is the first field that requires too much, not the word that chose the image.
    """
    missing = unmet(required, found.tools)
    if not missing:
        return found
    first, told = missing[0], _told(missing[0])
    name = f"{found.entry.image.name}:{found.held.release.number}"
    message = f"{first.required.requirement} is required and {name} has {_has_of(first)}"
    facts = {**told, "release": name, "unmet": [_told(it) for it in missing]}
    at = blamed(Refusal(Reason.REQUIREMENTS_UNMET, message, None, facts), by)
    return Refusal(at.reason, at.message, _REQUIRED_IN[first.required.level], at.details)


def _told(it: Unmet) -> dict[str, object]:
    requirement = it.required.requirement
    told: dict[str, object] = {"tool": requirement.tool, "wanted": requirement.wanted, "found": it.found}
    if it.required.level is not Level.SESSION:
        told |= {"template": it.required.subject}
    return {**told, "field": it.required.field}


def _has_of(it: Unmet) -> str:
    if it.found == UNKNOWN:
        return "no verified tools"
    tool = it.required.requirement.tool
    return f"no verified {tool}" if it.found is None else f"{tool} {it.found}"
