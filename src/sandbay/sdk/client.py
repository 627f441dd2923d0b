"""What a project may ask for, whichever client asks."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

WAIT = 1800
"""Seconds for which a create waits for an image or a free place, unless the caller says otherwise."""


SUSPEND_WAIT = 600
"""Seconds for which a suspend or a resume waits, unless the caller says otherwise."""


class Wish(TypedDict, total=False):
    """What else a Session should be like; what is absent or None is the installation's choice."""

    template: str | None
    """A Template of the project, by name or id."""
    agent: str | None
    """The agent that it runs for."""
    scope: str | None
    """The narrowest scope that it acts in, as `team:growth`."""
    platform: str | None
    requires: Sequence[str] | None
    """Tools that the image must have, verified: `node>=20`, `git`."""
    env: Mapping[str, str | Mapping[str, str]] | None
    """Variables; a value `{"secret": NAME}` is a secret of the project."""
    resources: Mapping[str, Any] | None
    """At least `{cpus?, memory?, pids?}`, memory in bytes."""
    network: str | None
    files: Mapping[str, str | bytes] | None
    """Path in the workspace → content."""
    metadata: Mapping[str, str] | None
    idle_timeout: int | None
    """Seconds without use after which it ends; never more than the installation allows."""
    max_life: int | None
    """Seconds from its admission after which it ends."""


def said(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request's body without what is None."""
    return {name: value for name, value in body.items() if value is not None}
