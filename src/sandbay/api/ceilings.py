"""`sandbox/allow-lists`, `sandbox/overrides`, `sandbox/grants`: what may be chosen, whoever chooses."""

from dataclasses import replace

from fastapi import APIRouter

from sandbay.api.calls import Name, TheActor, TheCore, ThePage
from sandbay.api.documented import refusing
from sandbay.api.scopes import ExpectedRevision
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page_of_more
from sandbay.api.wire.standing import (
    AllowListIn,
    AllowListList,
    AllowListOut,
    GrantIn,
    GrantList,
    GrantOut,
    OverrideIn,
    OverrideList,
    OverrideOut,
    allow_list_out,
    grant_out,
    override_out,
)
from sandbay.app.ceilings import CEILINGS, GRANTED, allow, grant, image_names, override, withdraw
from sandbay.app.standing import drop_row, rows
from sandbay.app.subjects import called, find_subject
from sandbay.domain.ceiling import AllowListAt, Grant, OverrideAt
from sandbay.domain.reasons import Reason
from sandbay.ports.standing import key_of

allow_lists = APIRouter(prefix="/core/v1/sandbox/allow-lists", route_class=StrictRoute, tags=["selection"])
overrides = APIRouter(prefix="/core/v1/sandbox/overrides", route_class=StrictRoute, tags=["selection"])
grants = APIRouter(prefix="/core/v1/sandbox/grants", route_class=StrictRoute, tags=["selection"])

_THERE = (Reason.NOT_FOUND, Reason.SCOPE_UNKNOWN)
_WRITING = (*_THERE, Reason.REVISION_STALE)


@allow_lists.get("", responses=refusing())
def get_allow_lists(core: TheCore, asked: ThePage) -> AllowListList:
    """List all allow-lists by subject."""
    found = rows(core, AllowListAt, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(found, asked, key_of)
    return AllowListList(items=[allow_list_out(row, called(core, row.subject)) for row in shown], next=following)


@allow_lists.put("/{subject}", responses=refusing(*_WRITING, Reason.IMAGE_UNKNOWN))
def put_allow_list(core: TheCore, actor: TheActor, subject: Name, body: AllowListIn) -> AllowListOut:
    """Say which images may be chosen at the deployment, by a project or in a scope. Sessions that are there stay."""
    found = find_subject(core, subject, CEILINGS)
    row = allow(core, actor, found, body.allowed(), body.reason, body.expected_revision)
    return allow_list_out(row, called(core, row.subject))


@allow_lists.delete("/{subject}", status_code=204, responses=refusing(*_WRITING))
def delete_allow_list(
    core: TheCore, actor: TheActor, subject: Name, expected_revision: ExpectedRevision = None
) -> None:
    """Take an allow-list away: the subject allows everything again."""
    drop_row(core, actor, AllowListAt, find_subject(core, subject, CEILINGS), expected_revision)


@overrides.get("", responses=refusing())
def get_overrides(core: TheCore, asked: ThePage) -> OverrideList:
    """List all request overrides by subject."""
    found = rows(core, OverrideAt, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(found, asked, key_of)
    return OverrideList(items=[override_out(row, called(core, row.subject)) for row in shown], next=following)


@overrides.put("/{subject}", responses=refusing(*_WRITING))
def put_override(core: TheCore, actor: TheActor, subject: Name, body: OverrideIn) -> OverrideOut:
    """Say whether Session requests may name an image at the deployment, in a project or in a scope."""
    found = find_subject(core, subject, CEILINGS)
    row = override(core, actor, found, body.override, body.reason, body.expected_revision)
    return override_out(row, called(core, row.subject))


@overrides.delete("/{subject}", status_code=204, responses=refusing(*_WRITING))
def delete_override(core: TheCore, actor: TheActor, subject: Name, expected_revision: ExpectedRevision = None) -> None:
    """Take the word away: the subject allows it again."""
    drop_row(core, actor, OverrideAt, find_subject(core, subject, CEILINGS), expected_revision)


@grants.get("", responses=refusing())
def get_grants(core: TheCore, asked: ThePage) -> GrantList:
    """List all grants by subject."""
    found = rows(core, Grant, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(found, asked, key_of)
    names = image_names(core, shown)
    items = [grant_out(row, called(core, row.subject), names[row.image]) for row in shown]
    return GrantList(items=items, next=following)


@grants.put("/{subject}/{image}", responses=refusing(*_WRITING, Reason.IMAGE_UNKNOWN))
def put_grant(core: TheCore, actor: TheActor, subject: Name, image: Name, body: GrantIn) -> GrantOut:
    """Let a project, or Sessions in a scope, use a restricted image."""
    row = grant(core, actor, find_subject(core, subject, GRANTED), image, body.reason)
    return grant_out(row, called(core, row.subject), image_names(core, [row])[row.image])


@grants.delete("/{subject}/{image}", status_code=204, responses=refusing(*_WRITING, Reason.IMAGE_UNKNOWN))
def delete_grant(core: TheCore, actor: TheActor, subject: Name, image: Name) -> None:
    """Take a grant away. Sessions that are there stay."""
    withdraw(core, actor, find_subject(core, subject, GRANTED), image)
