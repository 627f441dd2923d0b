"""Publishing: an image's folder as its author wrote it, and the durable record of making a release of it.

    queued ─slot▶ building ─layout▶ registering ─release▶ checking ─proved▶ promoting ─▶ done
                          └─unchanged: the release there is▶ checking
    queued … checking ─▶ failed(fault) or cancelled        promoting ─▶ failed(fault)

Whoever dies while building or registering leaves nothing to go on with, so it is built anew, a few times at most;
checking and promoting are looked at again as often as need be.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.errors import Refusal
from sandbay.domain.ids import PublishId, ReleaseId, UploadId
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import ImageReference, Malformed, OciReference, is_image_name, parse_image, parse_oci
from sandbay.domain.release import Fault

RECIPE = "image.toml"
RECIPE_BYTES = 64 * 1024
CONTAINERFILES = ("Containerfile", "Dockerfile")
"""What a folder's instructions are called; the first that is there counts."""
BASE_ARGUMENT = "BASE"
"""The `ARG` that a Containerfile beside an image.toml begins with: its base."""
BOOTSTRAPS = ("debian:12",)
"""The distributions that an image can begin with, made from their packages."""
MAX_ATTEMPTS = 3

IMAGE_BASE = "image:"
"""How a base begins that is one of the catalog's images."""
_BOOTSTRAP = "bootstrap:"
_TEXT = re.compile(r"[^\x00-\x1f\x7f]+")
_TOOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_MAX_TEXT, _MAX_ENTRIES = 4_096, 64


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A distribution's smallest system, made from its packages, such as `debian:12`."""

    distribution: str


Origin = ImageReference | OciReference | Bootstrap
"""What an image can stand on: one of the catalog's, one of a registry's, or a bare distribution."""


@dataclass(frozen=True)
class Recipe:
    """An image.toml. `base` is as it is written; `origin_of` says what it means."""

    name: str
    base: str
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)


class PublishPhase(StrEnum):
    """DONE, FAILED and CANCELLED are final."""

    QUEUED = "queued"
    BUILDING = "building"
    REGISTERING = "registering"
    CHECKING = "checking"
    PROMOTING = "promoting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_P = PublishPhase

PUBLISH_MOVES: Mapping[PublishPhase, frozenset[PublishPhase]] = {
    _P.QUEUED: frozenset({_P.BUILDING, _P.FAILED, _P.CANCELLED}),
    _P.BUILDING: frozenset({_P.BUILDING, _P.REGISTERING, _P.CHECKING, _P.FAILED, _P.CANCELLED}),
    _P.REGISTERING: frozenset({_P.BUILDING, _P.CHECKING, _P.FAILED, _P.CANCELLED}),
    _P.CHECKING: frozenset({_P.PROMOTING, _P.DONE, _P.FAILED, _P.CANCELLED}),
    _P.PROMOTING: frozenset({_P.DONE, _P.FAILED}),
    _P.DONE: frozenset(),
    _P.FAILED: frozenset(),
    _P.CANCELLED: frozenset(),
}

FINISHED = frozenset({_P.DONE, _P.FAILED, _P.CANCELLED})
UNDER_WAY = frozenset(PublishPhase) - FINISHED - {_P.QUEUED}
"""One publish of an image at a time is in one of these."""


@dataclass(frozen=True, slots=True)
class Base:
    """What a FROM meant when it was built: `text` as written, the digest of the image's manifest.

    `release` names the catalog's release (`base:3`). The digest of a bootstrap names what it is made by.
    """

    text: str
    digest: str
    release: str | None = None
    layers: int = 0


@dataclass(frozen=True)
class Inputs:
    """Everything that goes into a build. Equal digests give one image, here and in any other installation.

    `files` is a digest over path, kind, executable bit and content of the whole context. The state of a
    distribution's archive is not among them: newer packages are asked for with `rebuild`.
    """

    files: str
    dockerfile: str
    bases: tuple[Base, ...]
    platform: str
    builder: str

    @cached_property
    def digest(self) -> str:
        """Where the bases were found does not count, only what they are."""
        bases = {base.text: base.digest for base in self.bases}
        return sha256(canonical([self.files, self.dockerfile, bases, self.platform, self.builder]))


@dataclass(frozen=True, slots=True)
class PublishOrder:
    """What was asked: an uploaded context with an image.toml, or with a Dockerfile and a name for the image."""

    upload: UploadId
    name: str | None = None
    dockerfile: str | None = None
    promote: str | None = None
    source_commit: str | None = None
    rebuild: bool = False


@dataclass(frozen=True)
class Publish:
    """One publish, from the order to its end. `built` is False where the release there is was answered."""

    id: PublishId
    image: str
    order: PublishOrder
    principal: str
    created_at: datetime
    phase: PublishPhase = PublishPhase.QUEUED
    attempt: int = 0
    inputs: Inputs | None = None
    release: ReleaseId | None = None
    built: bool | None = None
    cancelled_by: str | None = None
    fault: Fault | None = None
    moved_at: datetime | None = None
    ended_at: datetime | None = None
    revision: int = 1


def read_recipe(data: bytes) -> Recipe | Refusal:
    """An image.toml, strictly: what it asks for and cannot be had is refused by name, never ignored."""
    if len(data) > RECIPE_BYTES:
        return _refusal("", f"it has more than {RECIPE_BYTES} bytes")
    try:
        members = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        return _refusal("", f"it is no TOML: {str(error)[:200]}")
    faults = (fault for name in members if (fault := _unexpected(name)) is not None)
    refusal = next(faults, None) or _fault_of(members)
    if refusal is not None:
        return refusal
    known = ("name", "base", "description", "labels", "tools")
    return Recipe(**{name: members[name] for name in known if name in members})


def _refusal(member: str, why: str) -> Refusal:
    return Refusal(Reason.INVALID_BODY, f"{RECIPE}: {why}", f"{RECIPE}.{member}" if member else RECIPE)


def _unexpected(name: str) -> Refusal | None:
    if name in ("name", "base", "description", "labels", "tools"):
        return None
    if name == "packs":
        return _refusal("packs", "packs are not supported yet; put what they install into the Containerfile")
    return _refusal(name[:64], f"there is no member {name[:64]!r}")


def _fault_of(members: Mapping[str, object]) -> Refusal | None:
    """The first fault, in the order of the manual."""
    if not (isinstance(members.get("name"), str) and is_image_name(str(members["name"]))):
        return _refusal("name", "name has to be lower-case letters, digits and -, at most 63, not starting with -")
    base = members.get("base")
    if not isinstance(base, str):
        return _refusal("base", "base has to be a text, such as image:base")
    origin = origin_of(base)
    if isinstance(origin, Malformed):
        return _refusal("base", origin.why)
    if isinstance(origin, OciReference) and not origin.pinned:
        return _refusal("base", "an image of a registry is a base by its digest only (…@sha256:…)")
    if not _is_text(members.get("description", "-")):
        return _refusal("description", "description has to be one line of text")
    return _fault_of_map(members.get("labels", {}), "labels", _TEXT) or _fault_of_map(
        members.get("tools", {}), "tools", _TOOL
    )


def _fault_of_map(value: object, member: str, names: re.Pattern[str]) -> Refusal | None:
    if not isinstance(value, dict) or len(value) > _MAX_ENTRIES:
        return _refusal(member, f"{member} has to be a table of at most {_MAX_ENTRIES} texts")
    for name, text in value.items():
        if not names.fullmatch(name) or not _is_text(text):
            return _refusal(f"{member}.{name[:64]}", f"{member} maps a name to one line of text")
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and _TEXT.fullmatch(value) is not None


def origin_of(text: str) -> Origin | Malformed:
    """What a base is: `image:NAME[:ref]`, `bootstrap:debian:12`, or a reference to a registry."""
    if text.startswith(IMAGE_BASE):
        return parse_image(text.removeprefix(IMAGE_BASE))
    if text.startswith(_BOOTSTRAP):
        distribution = text.removeprefix(_BOOTSTRAP)
        if distribution in BOOTSTRAPS:
            return Bootstrap(distribution)
        return Malformed(f"what can be bootstrapped is {', '.join(BOOTSTRAPS)}")
    return parse_oci(text)
