"""OCI layouts with exactly one image: written, to the byte the same every time, and read back where they were kept."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from isal import isal_zlib

from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import IMAGE_ID, Layer, Variant
from sandbay.engine.digest import CHUNK, chunks_of, hex_of, read_verified, verified
from sandbay.engine.media import LAYERS, OCI_INDEX, OCI_MANIFEST, Compression
from sandbay.ports.blobs import Blobs

EPOCH = 1686355200
"""What is newer gets this time, so that the same inputs give the same bytes: the first day of Debian 12."""
CREATED = "2023-06-10T00:00:00Z"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPES = {
    Compression.PLAIN: "application/vnd.oci.image.layer.v1.tar",
    Compression.GZIP: "application/vnd.oci.image.layer.v1.tar+gzip",
    Compression.ZSTD: "application/vnd.oci.image.layer.v1.tar+zstd",
}

_NAMED = {"org.opencontainers.image.ref.name": "latest"}  # other programs find no image without a name
_GZIP = 31  # with a gzip header, which then holds no name and no time
_LEVEL = 2  # an eighth larger than zlib's usual one, in a tenth of the time


@dataclass(frozen=True, slots=True)
class BuiltLayer:
    """One layer. `size` counts the bytes of the blob, `created_by` is for people."""

    digest: str
    diff_id: str
    size: int
    media_type: str
    created_by: str


@dataclass(frozen=True)
class BuiltImage:
    """An image whose blobs lie in `folder` under their hex names. `config` is the config's `config` part."""

    folder: Path
    layers: tuple[BuiltLayer, ...]
    config: Mapping[str, Any]


def add_layer(tar: IO[bytes], folder: Path, created_by: str) -> BuiltLayer:
    """Pack a tar into `folder` under its digest, always to the same bytes."""
    part = folder / "layer.part"
    unpacked = hashlib.sha256()
    packer = isal_zlib.compressobj(_LEVEL, wbits=_GZIP)
    with part.open("wb") as raw:
        while chunk := tar.read(CHUNK):
            unpacked.update(chunk)
            raw.write(packer.compress(chunk))
        raw.write(packer.flush())
    with part.open("rb") as file:
        digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    size = part.stat().st_size
    part.rename(folder / hex_of(digest))
    media_type = LAYER_TYPES[Compression.GZIP]
    return BuiltLayer(digest, f"sha256:{unpacked.hexdigest()}", size, media_type, created_by)


def fetch(variant: Variant, blobs: Blobs, folder: Path) -> BuiltImage:
    """A verified image out of the installation's store, its layers' blobs in `folder` as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    with blobs.open(variant.artifacts[IMAGE_ID].value) as file:
        document = json.loads(read_verified(file, variant.artifacts[IMAGE_ID].value, variant.config_size))
    said = [str(step.get("created_by", "")) for step in document.get("history") or [] if not step.get("empty_layer")]
    told = said if len(said) == len(variant.layers) else [""] * len(variant.layers)
    for layer in {layer.digest: layer for layer in variant.layers}.values():
        target = folder / hex_of(layer.digest)
        if not target.exists():
            _copy(blobs, layer, target)
    layers = (
        BuiltLayer(it.digest, it.diff_id, it.size, LAYER_TYPES[LAYERS[it.media_type]], words)
        for it, words in zip(variant.layers, told, strict=True)
    )
    return BuiltImage(folder, tuple(layers), document.get("config") or {})


def _copy(blobs: Blobs, layer: Layer, target: Path) -> None:
    with blobs.open(layer.digest) as source, target.open("xb") as file:
        for chunk in verified(chunks_of(source), layer.digest, layer.size):
            file.write(chunk)


def on_base(base: BuiltImage | None, diff_ids: Sequence[str]) -> Sequence[str]:
    """The diff ids that a build put on its base. Refuses with `build_failed` when it is not on that base at all."""
    below = [layer.diff_id for layer in base.layers] if base else []
    if list(diff_ids[: len(below)]) != below:
        raise RefusedError(Reason.BUILD_FAILED, "the build tool did not put its layers on the base's")
    return diff_ids[len(below) :]


def write_layout(folder: Path, image: BuiltImage, platform: Platform) -> None:
    """Make a new layout folder. Layers are hard links to those of `image.folder`, on the same file system."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for digest in {layer.digest for layer in image.layers}:
        os.link(image.folder / hex_of(digest), blobs / hex_of(digest))
    config, manifest = _documents(image, platform)
    for document in (config, manifest):
        (blobs / hex_of(sha256(document))).write_bytes(document)
    entry = {**_descriptor(OCI_MANIFEST, manifest), "platform": _platform(platform), "annotations": _NAMED}
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}
    (folder / "index.json").write_bytes(canonical(index))
    (folder / "oci-layout").write_bytes(canonical({"imageLayoutVersion": "1.0.0"}))


def is_whole(folder: Path) -> bool:
    """Whether a folder is a layout written here, every blob of it right."""
    try:
        (entry,) = json.loads((folder / "index.json").read_bytes())["manifests"]
        manifest = json.loads((folder / "blobs" / "sha256" / hex_of(entry["digest"])).read_bytes())
        for part in (entry, manifest["config"], *manifest["layers"]):
            with (folder / "blobs" / "sha256" / hex_of(part["digest"])).open("rb") as file:
                for _ in verified(chunks_of(file), part["digest"], part["size"]):
                    pass
    except (OSError, ValueError, LookupError, TypeError, RefusedError):
        return False
    return True


def _documents(image: BuiltImage, platform: Platform) -> tuple[bytes, bytes]:
    """Config and manifest, as they are written and hashed."""
    config = canonical(
        {
            **_platform(platform),
            "created": CREATED,
            "config": image.config,
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in image.layers]},
            "history": [{"created": CREATED, "created_by": layer.created_by} for layer in image.layers],
        }
    )
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": _descriptor(CONFIG_TYPE, config),
        "layers": [{"mediaType": it.media_type, "digest": it.digest, "size": it.size} for it in image.layers],
    }
    return config, canonical(manifest)


def _platform(platform: Platform) -> dict[str, str]:
    words = {"os": platform.os, "architecture": platform.architecture}
    return words if platform.variant is None else {**words, "variant": platform.variant}


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": sha256(data), "size": len(data)}
