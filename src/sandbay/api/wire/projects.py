"""Projects and their keys."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from sandbay.api.wire.base import In, Line, Listing, Out, Reference, Revision, Slug
from sandbay.api.wire.scopes import AgentText, ScopeText
from sandbay.domain.project import Key, Project
from sandbay.domain.scope import Confinement


class ProjectIn(In):
    """A new project."""

    name: Slug = Field(description="Lower-case letters, digits and -.")


class PreferenceIn(In):
    """What to change; an omitted member keeps its value."""

    runtime_image_id: Reference | None = Field(
        default=None, description="The image of Sessions that name none; null clears it."
    )
    expected_revision: Revision | None = Field(default=None, description="Refuse if it has another one by now.")

    @property
    def speaks(self) -> bool:
        """Whether `runtime_image_id` was sent at all."""
        return "runtime_image_id" in self.model_fields_set


class ProjectChange(In):
    """What to change; an omitted member keeps its value."""

    scope_required: bool | None = Field(default=None, description="Whether each of its Sessions has to name a scope.")
    expected_revision: Revision | None = Field(default=None, description="Refuse if it has another one by now.")


class KeyIn(In):
    """A new key. What it is held to is part of every Session that it makes, and stays as it is."""

    name: Line = Field(description="What it is for.")
    principal: Line | None = Field(default=None, description="Who acts with it, for the audit; the name when omitted.")
    scope: ScopeText | None = Field(
        default=None, description="The scope that it is held to, with all below it; null for the whole project."
    )
    agents: Annotated[list[AgentText], Field(min_length=1, max_length=64)] | None = Field(
        default=None, description="The agents that it is held to; null for all."
    )

    def confinement(self) -> Confinement:
        """As the domain has it."""
        return Confinement(self.scope, None if self.agents is None else frozenset(self.agents))


class ProjectOut(Out):
    """A tenant."""

    id: str = Field(description="Its id.")
    name: str = Field(description="Its name.")
    created_at: datetime = Field(description="When it was made.")
    runtime_image_id: str | None = Field(description="The image of Sessions that name none.")
    revision: int = Field(description="Rises with every change.")
    scope_required: bool = Field(description="Whether each of its Sessions has to name a scope.")


class ProjectList(Listing[ProjectOut]):
    """Projects by name."""


class KeyOut(Out):
    """A key, without its secret."""

    id: str = Field(description="Its id.")
    name: str = Field(description="What it is for.")
    principal: str = Field(description="Who acts with it.")
    created_at: datetime = Field(description="When it was made.")
    revoked_at: datetime | None = Field(description="Since when it works nowhere.")
    scope: str | None = Field(description="The scope that it is held to, with all below it.")
    agents: list[str] | None = Field(description="The agents that it is held to.")


class NewKeyOut(KeyOut):
    """A key, with its secret this once."""

    secret: str = Field(description="Shown this once.")


class KeyList(Listing[KeyOut]):
    """Keys by id."""


def project_out(project: Project, reference: str | None) -> ProjectOut:
    """From the domain; `reference` is what its binding says."""
    return ProjectOut(
        id=project.id,
        name=project.name,
        created_at=project.created_at,
        runtime_image_id=reference,
        revision=project.revision,
        scope_required=project.scope_required,
    )


def key_out(key: Key) -> KeyOut:
    """From the domain."""
    held = key.confinement
    return KeyOut(
        id=key.id,
        name=key.name,
        principal=key.principal,
        created_at=key.created_at,
        revoked_at=key.revoked_at,
        scope=held.scope,
        agents=None if held.agents is None else sorted(held.agents),
    )


def new_key_out(key: Key, secret: str) -> NewKeyOut:
    """From the domain, with the secret that nobody keeps."""
    return NewKeyOut(**key_out(key).model_dump(), secret=secret)
