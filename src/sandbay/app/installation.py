"""The first start: one transaction makes the deployment, the project `default` and both keys."""

import platform as host
from collections.abc import Sequence
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.access import mint
from sandbay.app.core import SYSTEM, Core
from sandbay.domain.deployment import Deployment, Pool
from sandbay.domain.ids import ProjectId
from sandbay.domain.platform import Platform
from sandbay.domain.project import KeyKind, Project
from sandbay.ports.changes import AddKey, AddProject, Change, Conflict, ConflictKind, SetDeployment
from sandbay.ports.store import ProjectOf, TheDeployment

DEFAULT_PROJECT = "default"


def host_platform() -> Platform:
    """What this machine runs."""
    return Platform.of("linux", host.machine())


def ensure_installation(core: Core, pools: Sequence[Pool]) -> None:
    """Generation 1 and the project `default`, if there are none; the pools also where there are none at all.

    Repeating it changes nothing. Another Core may make it at the same moment; that is no fault.
    """
    now = core.store.read(TheDeployment())
    if now is None or (pools and not now.pools):
        first = replace(now or Deployment(0, host_platform(), ()), pools=tuple(pools))
        following = replace(first, generation=first.generation + 1)
        told = audit.done(core, SYSTEM, "deployment.set", f"generation {following.generation}")
        _unless_made(core, SetDeployment(following, first.generation), told)
    if core.store.read(ProjectOf(DEFAULT_PROJECT)) is None:
        project = Project(ProjectId(core.ids.new("project")), DEFAULT_PROJECT, core.clock.now())
        _unless_made(core, AddProject(project), audit.done(core, SYSTEM, "project.create", project.id))


def _unless_made(core: Core, *changes: Change) -> None:
    try:
        core.store.apply(*changes)
    except Conflict as conflict:
        if conflict.kind not in (ConflictKind.STALE, ConflictKind.TAKEN):
            raise


def local_keys(core: Core) -> tuple[str, str]:
    """A fresh administrator key and a fresh key of the project `default`, for this host's context file."""
    project = core.store.read(ProjectOf(DEFAULT_PROJECT))
    if project is None:
        msg = "the installation has no project default"
        raise LookupError(msg)
    admin, admin_secret = mint(core, KeyKind.ADMINISTRATOR, "local", "local administrator")
    key, secret = mint(core, KeyKind.PROJECT, "local", "local user", project.id)
    core.store.apply(
        AddKey(admin), AddKey(key), audit.done(core, SYSTEM, "key.create", key.id, {"administrator": admin.id})
    )
    return admin_secret, secret
