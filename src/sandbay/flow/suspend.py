"""Whether a Session can be suspended now, or why not. Pure; `app.suspend` applies it."""

from collections.abc import Collection
from enum import StrEnum

from sandbay.domain.declaration import Ability
from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL, SessionState


class Suspend(StrEnum):
    """What there is to do."""

    BEGIN = "begin"
    NOTHING = "nothing"


_SO_ALREADY = frozenset({SessionState.SUSPENDING, SessionState.SUSPENDED})
_OVER = FINAL | {SessionState.ENDING}


def suspend(state: SessionState, abilities: Collection[Ability], *, online: bool) -> Suspend | Refusal:
    """`abilities` of its pool's provider; `online`: its node. Repeating it is fine.

    Its node has to be there: one that is away could not say whether there is anything left to keep.
    """
    if state in _SO_ALREADY:
        return Suspend.NOTHING
    facts = {"status": state.value}
    if state in _OVER:
        return Refusal(Reason.ALREADY_ENDED, f"the Session is {state.value}", details=facts)
    if state is not SessionState.RUNNING:
        return Refusal(Reason.NOT_RUNNING, f"the Session is {state.value}", details=facts)
    if Ability.SUSPEND not in abilities:
        has = {"abilities": sorted(it.value for it in abilities)}
        return Refusal(Reason.ABILITY_UNSUPPORTED, "the provider of this Session has no suspend", details=has)
    if not online:
        return Refusal(Reason.NO_NODE_ONLINE, "the Session's node is not online")
    return Suspend.BEGIN
