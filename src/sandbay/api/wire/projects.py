"""Projects and their keys."""

from datetime import datetime

from pydantic import Field

from sandbay.api.wire.base import In, Line, Listing, Out, Reference, Revision, Slug
from sandbay.domain.project import Key, Project


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


class KeyIn(In):
    """A new key."""

    name: Line = Field(description="What it is for.")
    principal: Line | None = Field(default=None, description="Who acts with it, for the audit; the name when omitted.")


class ProjectOut(Out):
    """A tenant."""

    id: str = Field(description="Its id.")
    name: str = Field(description="Its name.")
    created_at: datetime = Field(description="When it was made.")
    runtime_image_id: str | None = Field(description="The image of Sessions that name none.")
    revision: int = Field(description="Rises with every change.")


class ProjectList(Listing[ProjectOut]):
    """Projects by name."""


class KeyOut(Out):
    """A key, without its secret."""

    id: str = Field(description="Its id.")
    name: str = Field(description="What it is for.")
    principal: str = Field(description="Who acts with it.")
    created_at: datetime = Field(description="When it was made.")
    revoked_at: datetime | None = Field(description="Since when it works nowhere.")


class NewKeyOut(KeyOut):
    """A key, with its secret this once."""

    secret: str = Field(description="Shown this once.")


class KeyList(Listing[KeyOut]):
    """Keys by id."""


def project_out(project: Project) -> ProjectOut:
    """From the domain."""
    return ProjectOut(
        id=project.id,
        name=project.name,
        created_at=project.created_at,
        runtime_image_id=project.runtime_image_id,
        revision=project.revision,
    )


def key_out(key: Key) -> KeyOut:
    """From the domain."""
    return KeyOut(
        id=key.id, name=key.name, principal=key.principal, created_at=key.created_at, revoked_at=key.revoked_at
    )


def new_key_out(key: Key, secret: str) -> NewKeyOut:
    """From the domain, with the secret that nobody keeps."""
    return NewKeyOut(**key_out(key).model_dump(), secret=secret)
