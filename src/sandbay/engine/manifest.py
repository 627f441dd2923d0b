"""Indexes, manifests and configs as small values: pure parsing, every doubt is a refusal."""

import itertools
from dataclasses import dataclass

from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ImageConfig, Layer, Step
from sandbay.engine.digest import parse_digest
from sandbay.engine.documents import Document, read_document
from sandbay.engine.limits import Limits, exceeded
from sandbay.engine.media import CONFIGS, DOCUMENTS, LAYERS, OCI_INDEX, OCI_MANIFEST, Kind

REF_NAME = "org.opencontainers.image.ref.name"
FULL_NAME = "io.containerd.image.name"
_ATTESTATION = "vnd.docker.reference.type"
_UNKNOWN = "unknown"
_SCHEMA = 2
_STEPS = 1000
_STEP_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A pointer to a blob: its digest, and its size in bytes."""

    media_type: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry of an index. `platform` is what the index says: a hint, until the config has said the same.

    `full_name` is what docker and containerd write beside a name that is then only a tag.
    """

    descriptor: Descriptor
    platform: Platform | None
    name: str | None
    full_name: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """One image: its config and its layers, the lowest first."""

    config: Descriptor
    layers: tuple[Descriptor, ...]


@dataclass(frozen=True, slots=True)
class Config:
    """What the config says: for which platform, which tars, how to run it, and how it was made."""

    platform: Platform
    diff_ids: tuple[str, ...]
    image: ImageConfig
    history: tuple[Step, ...]


def parse_index(data: bytes, said: str = OCI_INDEX) -> tuple[IndexEntry, ...]:
    """The entries that may be images, in order; attestations and artifacts are no images and left out.

    `said` is the media type of the descriptor that led here. Refuses with `malformed_manifest`.
    """
    document = read_document(data, Reason.MALFORMED_MANIFEST, "index")
    _check_shape(document, said, Kind.INDEX)
    entries = (_entry(part) for part in document.parts("manifests"))
    return tuple(entry for entry in entries if entry is not None)


def parse_manifest(data: bytes, limits: Limits, said: str | None = None) -> Manifest:
    """One image's manifest. `said` is the descriptor's media type, None where only the digest is known.

    Refuses with `malformed_manifest`, `not_an_image`, `unsupported_media_type`, `limit_exceeded`.
    """
    document = read_document(data, Reason.MALFORMED_MANIFEST, "manifest")
    _check_shape(document, said or document.text("mediaType", OCI_MANIFEST), Kind.MANIFEST)
    part = document.part("config")
    if part is None:
        raise document.fault("config must be an object")
    config = _descriptor(part)
    if config.media_type not in CONFIGS:
        raise RefusedError(
            Reason.NOT_AN_IMAGE,
            "the manifest is of an artifact, not of an image",
            details={"config_media_type": config.media_type},
        )
    parts = document.parts("layers")
    check_limit("layers", len(parts), limits.layers)
    return Manifest(config, tuple(_layer(part) for part in parts))


def parse_config(data: bytes) -> Config:
    """An image's config. Refuses with `malformed_config`."""
    document = read_document(data, Reason.MALFORMED_CONFIG, "config")
    rootfs = document.part("rootfs")
    if rootfs is None or rootfs.text("type") != "layers":
        raise document.fault("rootfs must be of type layers")
    diff_ids = tuple(parse_digest(text) for text in rootfs.texts("diff_ids") or ())
    platform = _platform(document)
    if platform is None:
        raise document.fault("os and architecture must name a platform")
    return Config(platform, diff_ids, _image_config(document.part("config")), _history(document, len(diff_ids)))


def layers_of(manifest: Manifest, config: Config) -> tuple[Layer, ...]:
    """Pair the manifest's layers with the config's diff ids. Refuses with `malformed_config` on unequal counts."""
    if len(manifest.layers) != len(config.diff_ids):
        raise RefusedError(
            Reason.MALFORMED_CONFIG,
            "the config lists another number of layers than the manifest",
            details={"layers": len(manifest.layers), "diff_ids": len(config.diff_ids)},
        )
    pairs = zip(manifest.layers, config.diff_ids, strict=True)
    return tuple(Layer(each.digest, diff_id, each.size, each.media_type) for each, diff_id in pairs)


def check_limit(limit: str, value: int, bound: int) -> None:
    """Refuse with `limit_exceeded` when the value is past its bound."""
    if value > bound:
        raise RefusedError.of(exceeded(limit, value, bound))


def _check_shape(document: Document, said: str, kind: Kind) -> None:
    """A document that two readers could take for two things is refused."""
    own = document.text("mediaType", said)
    if own != said:
        raise document.fault(f"it says that it is {own[:140]}, the descriptor says {said[:140]}")
    if own not in DOCUMENTS:
        raise unsupported(own)
    if DOCUMENTS[own] is not kind:
        raise document.fault(f"a document of type {own} is no {kind}")
    if document.number("schemaVersion") != _SCHEMA:
        raise document.fault(f"schemaVersion must be {_SCHEMA}")
    foreign = ("config", "layers", "fsLayers") if kind is Kind.INDEX else ("manifests", "fsLayers")
    for name in foreign:
        if name in document.members:
            raise document.fault(f"{name} has no place in it")


def unsupported(media_type: str) -> RefusedError:
    """The refusal for a media type that we do not read."""
    return RefusedError(
        Reason.UNSUPPORTED_MEDIA_TYPE,
        f"the media type {media_type[:140]} is not supported",
        details={"media_type": media_type[:140]},
    )


def _descriptor(part: Document) -> Descriptor:
    return Descriptor(part.text("mediaType"), parse_digest(part.text("digest")), part.number("size"))


def _layer(part: Document) -> Descriptor:
    media_type = part.text("mediaType")
    if media_type not in LAYERS:
        raise unsupported(media_type)
    return _descriptor(part)


def _entry(part: Document) -> IndexEntry | None:
    """None for what is no image: attestations (`unknown/unknown`), and artifacts that say so."""
    annotations = part.part("annotations")
    where = part.part("platform")
    if part.has("artifactType") or (annotations and annotations.has(_ATTESTATION)):
        return None
    platform = _platform(where) if where else None
    if where and platform is None:
        return None
    name, full = (annotations.text(each, "") if annotations else "" for each in (REF_NAME, FULL_NAME))
    return IndexEntry(_descriptor(part), platform, name or None, full or None)


def _platform(part: Document) -> Platform | None:
    """None when the parts name no platform that could ever be wanted."""
    os, architecture, variant = part.text("os"), part.text("architecture"), part.text("variant", "")
    if _UNKNOWN in (os, architecture) or "/" in os + architecture + variant:
        return None
    return Platform.parse("/".join(filter(None, (os, architecture, variant))) if os and architecture else "")


def _image_config(part: Document | None) -> ImageConfig:
    if part is None:
        return ImageConfig()
    env = part.texts("Env") or ()
    if any(setting.startswith("=") or "=" not in setting for setting in env):
        raise part.fault("Env must be a list of NAME=value")
    return ImageConfig(
        entrypoint=part.texts("Entrypoint"),
        cmd=part.texts("Cmd"),
        env=env,
        user=part.text("User", ""),
        workdir=part.text("WorkingDir", ""),
        stop_signal=part.text("StopSignal", ""),
    )


def _history(document: Document, layers: int) -> tuple[Step, ...]:
    """What each step left. It is a remark: nothing where it does not fit the layers or is too long to be read."""
    parts = document.parts("history") if document.has("history") else ()
    filled = itertools.count()
    steps = tuple(
        Step(_shortened(part.text("created_by", "")), None if part.flag("empty_layer") else next(filled))
        for part in parts
    )
    return steps if next(filled) == layers and len(steps) <= _STEPS else ()


def _shortened(text: str) -> str:
    return text if len(text) <= _STEP_LENGTH else text[: _STEP_LENGTH - 1] + "…"
