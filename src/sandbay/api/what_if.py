"""`sandbox/what-if`, `/v1/what-if`: whose answers a write would change, before it is done."""

from fastapi import APIRouter

from sandbay.api.calls import TheActor, TheCore, project_of
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.what_if import OwnWhatIfIn, WhatIfIn, WhatIfOut, impact_out
from sandbay.app.bindings import named_agent, own_scope
from sandbay.app.ceilings import CEILINGS
from sandbay.app.core import Core
from sandbay.app.images import find_image, find_release
from sandbay.app.standing import by
from sandbay.app.subjects import find_subject
from sandbay.app.what_if import what_if
from sandbay.domain.binding import MODES, Binding, Mode
from sandbay.domain.impact import AllowListWritten, BindingWritten, ChannelMoved, Retired, Supposition
from sandbay.domain.path import Subject
from sandbay.domain.reasons import Reason
