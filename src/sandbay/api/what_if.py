"""`sandbox/what-if`, `/v1/what-if`: whose answers a write would change, before it is done."""

from fastapi import APIRouter

from sandbay.api.calls import TheActor, TheCore, project_of
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.what_if import (
    OwnWhatIfIn,
    Supposed,
    SupposedAllowList,
    SupposedBinding,
    SupposedChannel,
    SupposedRetirement,
    WhatIfIn,
    WhatIfOut,
    impact_out,
)
from sandbay.app.bindings import own_agent, own_scope
from sandbay.app.ceilings import CEILINGS
from sandbay.app.core import Actor, Core
from sandbay.app.images import find_image, find_release
from sandbay.app.standing import by
from sandbay.app.subjects import find_subject
from sandbay.app.what_if import what_if
from sandbay.domain.binding import MODES, Binding, Mode
from sandbay.domain.impact import AllowListWritten, BindingWritten, ChannelMoved, Retired, Supposition
from sandbay.domain.path import Subject
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/v1/what-if", route_class=StrictRoute, tags=["selection"])
admin_router = APIRouter(prefix="/core/v1/sandbox/what-if", route_class=StrictRoute, tags=["selection"])

_UNKNOWN = (Reason.NOT_FOUND, Reason.SCOPE_UNKNOWN)


@admin_router.post("", responses=refusing(*_UNKNOWN, Reason.IMAGE_UNKNOWN, Reason.RELEASE_UNKNOWN))
def post_admin_what_if(core: TheCore, actor: TheActor, body: WhatIfIn) -> WhatIfOut:
    """List the Templates, agents, scopes and projects whose answer would change. Nothing is written."""
    return WhatIfOut(changes=[impact_out(it) for it in what_if(core, _supposition(core, actor, body.said))])


@router.post("", responses=refusing(*_UNKNOWN))
def post_what_if(core: TheCore, actor: TheActor, body: OwnWhatIfIn) -> WhatIfOut:
    """The same for a preference of the project, of one of its agents or of a scope; of this project only."""
    project = project_of(actor)
    if body.scope is not None:
        subject = Subject.of_scope(own_scope(core, actor, body.scope)[0].name)
    elif body.agent is not None:
        subject = own_agent(actor, project, body.agent)
    else:
        subject = Subject.of_project(project)
    supposed = _binding(core, actor, subject, Mode.PREFER, body.runtime_image_id)
    return WhatIfOut(changes=[impact_out(it) for it in what_if(core, supposed, project)])


def _supposition(core: Core, actor: Actor, said: Supposed) -> Supposition:
    match said:
        case SupposedBinding():
            subject = find_subject(core, said.subject, MODES)
            return _binding(core, actor, subject, said.mode, said.runtime_image_id)
        case SupposedAllowList():
            return AllowListWritten(find_subject(core, said.subject, CEILINGS), said.allowed())
        case SupposedChannel():
            entry = find_image(core, said.image)
            return ChannelMoved(entry.image.id, said.channel, find_release(entry, said.release).release.number)
        case SupposedRetirement():
            entry = find_image(core, said.image)
            number = None if said.release is None else find_release(entry, said.release).release.number
            return Retired(entry.image.id, number)


def _binding(core: Core, actor: Actor, subject: Subject, mode: Mode, reference: str | None) -> BindingWritten:
    written = by(core, actor, None)
    return BindingWritten(subject, None if reference is None else Binding(subject, mode, reference, written))
