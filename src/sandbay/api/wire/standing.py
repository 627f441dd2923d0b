"""What stands under subjects: bindings, allow-lists, request overrides, grants."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from sandbay.api.wire.base import UPGRADE, In, Labels, Listing, Out, Reference, Revision, Words
from sandbay.domain.binding import Binding, Mode, Written
from sandbay.domain.ceiling import AllowList, AllowListAt, Grant, Override, OverrideAt

_MOST = 1_000
_SUBJECT = "deployment, project:NAME, scope:KIND:REF or agent:PROJECT:NAME."


class _Guarded(In):
    """What every write may say."""

    reason: Words | None = Field(default=None, description="Why, for whoever reads it later.")
    expected_revision: Revision | None = Field(
        default=None, description="Refuse if there is another one by now; 0: if there is any."
    )


class OwnBindingIn(_Guarded):
    """A preference as it should be."""

    runtime_image_id: Reference = Field(description="An image reference.")


class BindingIn(OwnBindingIn):
    """A binding as it should be."""

    mode: Annotated[Mode, Field(strict=False)] = Field(
        default=Mode.PREFER, description="`prefer` gives way to narrower words and to wishes, `enforce` to neither."
    )


class AllowListIn(_Guarded):
    """An allow-list as it should be. An empty one allows nothing."""

    everything: bool = Field(default=False, description="Whether every image is allowed.")
    images: Annotated[list[Annotated[str, Field(min_length=1, max_length=63)]], Field(max_length=_MOST)] = Field(
        default=[], description="Names or ids of images."
    )
    labels: Annotated[list[Labels], Field(max_length=_MOST)] = Field(
        default=[], description="Selectors; an image that has all labels of one of them is allowed."
    )

    def allowed(self) -> AllowList:
        """As the domain has it."""
        return AllowList(self.everything, frozenset(self.images), tuple(dict(it) for it in self.labels))


class OverrideIn(_Guarded):
    """Whether Session requests may name an image."""

    override: Annotated[Override, Field(strict=False)] = Field(description="One `deny` on a path refuses them.")


class GrantIn(In):
    """A grant."""

    reason: Words | None = Field(default=None, description="Why, for whoever reads it later.")


class WrittenOut(Out):
    """What is known of every row."""

    subject: str = Field(description=f"Whose word it is: {_SUBJECT}")
    author: str = Field(description="Who wrote it.")
    at: datetime = Field(description="When.")
    reason: str | None = Field(description="Why.")
    revision: int = Field(description="Rises with every write.")


class BindingOut(WrittenOut):
    """A subject uses an image."""

    mode: Mode = Field(description="`prefer` or `enforce`.")
    runtime_image_id: str = Field(description="An image reference, as it was written.")
    upgrade_available: str | None = Field(description=UPGRADE)


class BindingList(Listing[BindingOut]):
    """Bindings by subject."""


class AllowListOut(WrittenOut):
    """What may be chosen below a subject."""

    everything: bool = Field(description="Whether every image is allowed.")
    images: list[str] = Field(description="Names or ids of images.")
    labels: list[dict[str, str]] = Field(description="Selectors.")


class AllowListList(Listing[AllowListOut]):
    """Allow-lists by subject."""


class OverrideOut(WrittenOut):
    """Whether Session requests may name an image below a subject."""

    override: Override = Field(description="`allow` or `deny`.")


class OverrideList(Listing[OverrideOut]):
    """Overrides by subject."""


class GrantOut(WrittenOut):
    """A subject may use a restricted image."""

    image: str = Field(description="The image's name.")


class GrantList(Listing[GrantOut]):
    """Grants by subject."""


def _said(written: Written, subject: str) -> dict[str, object]:
    return {
        "subject": subject,
        "author": written.author,
        "at": written.at,
        "reason": written.reason,
        "revision": written.revision,
    }


def binding_out(row: Binding, subject: str, upgrade: str | None) -> BindingOut:
    """From the domain; `subject` is what it is called."""
    said = {"mode": row.mode, "runtime_image_id": row.reference, "upgrade_available": upgrade}
    return BindingOut.model_validate({**_said(row.written, subject), **said})


def allow_list_out(row: AllowListAt, subject: str) -> AllowListOut:
    """From the domain."""
    said = {
        "everything": row.allowed.everything,
        "images": sorted(row.allowed.names),
        "labels": [dict(it) for it in row.allowed.selectors],
    }
    return AllowListOut.model_validate({**_said(row.written, subject), **said})


def override_out(row: OverrideAt, subject: str) -> OverrideOut:
    """From the domain."""
    return OverrideOut.model_validate({**_said(row.written, subject), "override": row.override})


def grant_out(row: Grant, subject: str, image: str) -> GrantOut:
    """From the domain; `image` is the name behind the id."""
    return GrantOut.model_validate({**_said(row.written, subject), "image": image})
