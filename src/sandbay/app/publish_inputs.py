"""What a publish is made of: the context as it was uploaded, read and judged, and what its bases mean now."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from sandbay.app.core import Core
from sandbay.app.registries import open_registry
from sandbay.app.select import current_deployment, select_base
from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.containerfile import MAX_BYTES, Containerfile, read_containerfile
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import UploadId
from sandbay.domain.platform import Platform
from sandbay.domain.publish import (
    BASE_ARGUMENT,
    CONTAINERFILES,
    IMAGE_BASE,
    RECIPE,
    RECIPE_BYTES,
    Base,
    Bootstrap,
    Origin,
    PublishOrder,
    Recipe,
    origin_of,
    read_recipe,
)
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import Malformed, OciReference
from sandbay.domain.release import Variant
from sandbay.flow.resolve import Rejected
from sandbay.ports.builder import Context
from sandbay.ports.image_source import Wanted
from sandbay.ports.store import UploadOf

T = TypeVar("T")
BASE = "base"


@dataclass(frozen=True)
class Prepared:
    """A context that was understood. `files` is a digest over all of it, `dockerfile` the path of its instructions."""

    recipe: Recipe
    dockerfile: str
    containerfile: Containerfile
    files: str
    count: int


@contextmanager
def open_context(core: Core, upload: UploadId) -> Iterator[Context]:
    """The upload as a context; `not_found` when it is unknown or expired."""
    found = core.store.read(UploadOf(upload))
    if found is None or found.expires_at <= core.clock.now():
        raise RefusedError(Reason.NOT_FOUND, f"there is no upload {upload}, or it has expired", param="upload")
    with core.uploads.context(upload) as context:
        yield context


def prepare(context: Context, order: PublishOrder) -> Prepared:
    """Read what the order needs of the context. Refuses with `invalid_body` and what is at fault in it."""
    recipe, dockerfile = _plain(order) if order.dockerfile is not None else _with_recipe(context)
    arguments = {} if order.dockerfile is not None else {BASE_ARGUMENT: recipe.base}
    data = context.read(dockerfile, MAX_BYTES)
    if data is None:
        raise RefusedError(Reason.INVALID_BODY, f"the context has no file {dockerfile}", param="dockerfile")
    read = _accepted(read_containerfile(data, arguments))
    if arguments and read.base != recipe.base:
        message = (
            f"{dockerfile} has to end on its base: begin it with ARG {BASE_ARGUMENT} and FROM ${{{BASE_ARGUMENT}}}"
        )
        raise RefusedError(Reason.INVALID_BODY, message, param="containerfile", details={"base": recipe.base})
    for text in read.images:
        origin(text)
    files = context.files()
    return Prepared(recipe, dockerfile, read, sha256(canonical(files)), len(files))


def _plain(order: PublishOrder) -> tuple[Recipe, str]:
    if order.name is None:
        raise RefusedError(Reason.INVALID_BODY, "say what the image is called", param="name")
    return Recipe(order.name, ""), order.dockerfile or ""


def _with_recipe(context: Context) -> tuple[Recipe, str]:
    data = context.read(RECIPE, RECIPE_BYTES)
    if data is None:
        message = f"the folder has no {RECIPE}; to publish a plain Dockerfile, name it and the image"
        raise RefusedError(Reason.INVALID_BODY, message, param=RECIPE)
    there = (name for name in CONTAINERFILES if context.read(name, 0) is not None)
    return _accepted(read_recipe(data)), next(there, CONTAINERFILES[0])


def _accepted(value: T | Refusal) -> T:
    if isinstance(value, Refusal):
        raise RefusedError.of(value)
    return value


def origin(text: str) -> Origin:
    """What a base is, or `invalid_reference`."""
    found = origin_of(text)
    if isinstance(found, Malformed):
        raise RefusedError(Reason.INVALID_REFERENCE, f"{text[:200]}: {found.why}", param=BASE)
    return found


@dataclass(frozen=True)
class Bases:
    """What the bases are: for the builder, and for the record."""

    built_on: Mapping[str, Variant | Bootstrap]
    recorded: tuple[Base, ...]


def find_bases(core: Core, file: Containerfile, platform: Platform) -> Bases:
    """Each image behind FROM, pinned now. What a registry has is copied into the installation's store."""
    found = {text: _find(core, text, platform) for text in file.images}
    return Bases({text: it for text, (it, _) in found.items()}, tuple(base for _, base in found.values()))


def _find(core: Core, text: str, platform: Platform) -> tuple[Variant | Bootstrap, Base]:
    match origin(text):
        case Bootstrap() as bare:
            return bare, Base(text, sha256(canonical([text, core.builder.version])))
        case OciReference() as reference:
            (variant,) = open_registry(core, reference).read(Wanted([platform]), core.blobs, lambda _: None)
            return variant, Base(text, variant.digest or "", None, len(variant.layers))
        case _:
            return registered(core, text, platform)


def registered(core: Core, text: str, platform: Platform) -> tuple[Variant, Base]:
    """The release of the catalog that a base means now; refused as it would be to a Session."""
    outcome = select_base(core, text.removeprefix(IMAGE_BASE), platform).outcome
    if isinstance(outcome, Rejected):
        refusal = outcome.refusal
        raise RefusedError(refusal.reason, f"the base {text}: {refusal.message}", param=BASE, details=refusal.details)
    variant = outcome.variant
    if variant.digest is None:
        raise RefusedError(Reason.RELEASE_INCOMPLETE, f"the base {text} has no bytes of ours", param=BASE)
    release = f"{outcome.entry.image.name}:{outcome.release.number}"
    return variant, Base(text, variant.digest, release, len(variant.layers))


def platform_of(core: Core) -> Platform:
    """What is built for: the deployment's default."""
    return current_deployment(core).default_platform
