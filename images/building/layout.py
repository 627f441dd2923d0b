"""OCI layouts with exactly one image: reading, checking and writing them, to the byte the same every time."""

import dataclasses
import gzip
import hashlib
import json
import os
import pathlib
import platform
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from images.building.host import CREATED, EPOCH, BuildError

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
REF_NAME = "org.opencontainers.image.ref.name"

_LEVEL = 6
_CHUNK = 1 << 20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    """One gzipped layer. `size` counts the bytes of the blob, `created_by` is for people."""

    digest: str
    diff_id: str
    size: int
    created_by: str


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """An image whose blobs lie in `folder` under their hex names. `config` is the config's `config` part."""

    folder: pathlib.Path
    layers: tuple[Layer, ...]
    config: Mapping[str, Any]


def architecture() -> str:
    """Return this host's architecture as OCI names it."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise BuildError(f"no images are built for {machine}: use a machine of {', '.join(_ARCHITECTURES)}")
    return _ARCHITECTURES[machine]


def canonical(value: object) -> bytes:
    """Return JSON with sorted keys and no spaces: what is hashed must not depend on who wrote it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest_of(data: bytes) -> str:
    """Return `sha256:<hex>` of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def add_layer(tar: IO[bytes], folder: pathlib.Path, created_by: str) -> Layer:
    """Gzip a tar into `folder` under its digest. No name and no time in the gzip header."""
    part = folder / "layer.part"
    unpacked = hashlib.sha256()
    with part.open("wb") as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packer:
        while chunk := tar.read(_CHUNK):
            unpacked.update(chunk)
            packer.write(chunk)
    digest = _file_digest(part)
    size = part.stat().st_size
    part.rename(folder / digest.removeprefix("sha256:"))
    return Layer(digest, f"sha256:{unpacked.hexdigest()}", size, created_by)


def new_diff_ids(base: Sequence[str], built: Sequence[str]) -> tuple[str, ...]:
    """Return the diff ids that a build put on its base; `BuildError` when it is not on that base at all."""
    if tuple(built[: len(base)]) != tuple(base):
        raise BuildError("the build does not start with its base's layers: start its Containerfile FROM ${BASE}")
    return tuple(built[len(base) :])


def small_tar(path: str, content: bytes) -> bytes:
    """Return a tar with one root-owned file, mode 0644, and the folders (0755) it stands in."""
    entries = []
    for parent in [str(p) for p in reversed(pathlib.PurePosixPath(path).parents)][1:]:
        folder = tarfile.TarInfo(f"{parent}/")
        folder.type, folder.mode, folder.mtime = tarfile.DIRTYPE, 0o755, EPOCH
        entries.append(folder.tobuf(tarfile.USTAR_FORMAT))
    file = tarfile.TarInfo(path)
    file.mode, file.mtime, file.size = 0o644, EPOCH, len(content)
    entries += [file.tobuf(tarfile.USTAR_FORMAT), content, bytes(-len(content) % tarfile.BLOCKSIZE)]
    return b"".join(entries) + bytes(2 * tarfile.BLOCKSIZE)


def write_layout(folder: pathlib.Path, name: str, image: Image) -> str:
    """Make a new layout folder holding `image` as `name`; return the manifest digest.

    Layer blobs are hard links to those of `image.folder`, which must be on the same file system.
    """
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for layer in image.layers:
        hexdigest = layer.digest.removeprefix("sha256:")
        if not (blobs / hexdigest).exists():
            os.link(image.folder / hexdigest, blobs / hexdigest)
    config, manifest = documents(image)
    for document in (config, manifest):
        (blobs / digest_of(document).removeprefix("sha256:")).write_bytes(document)
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                **_descriptor(MANIFEST_TYPE, manifest),
                "platform": {"os": "linux", "architecture": architecture()},
                "annotations": {REF_NAME: name},
            }
        ],
    }
    (folder / "index.json").write_bytes(canonical(index))
    (folder / "oci-layout").write_bytes(canonical({"imageLayoutVersion": "1.0.0"}))
    return digest_of(manifest)


def documents(image: Image) -> tuple[bytes, bytes]:
    """Return the config and the manifest of an image, as they are written and hashed."""
    config = canonical(
        {
            "architecture": architecture(),
            "os": "linux",
            "created": CREATED,
            "config": image.config,
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in image.layers]},
            "history": [{"created": CREATED, "created_by": layer.created_by} for layer in image.layers],
        }
    )
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": _descriptor(CONFIG_TYPE, config),
        "layers": [{"mediaType": LAYER_TYPE, "digest": layer.digest, "size": layer.size} for layer in image.layers],
    }
    return config, canonical(manifest)


def read_layout(folder: pathlib.Path) -> tuple[str, Image]:
    """Return manifest digest and image of a layout written here; `BuildError` when a byte of it is not right."""
    try:
        (entry,) = json.loads((folder / "index.json").read_bytes())["manifests"]
        manifest = json.loads(_blob(folder, entry["digest"]))
        config = json.loads(_blob(folder, manifest["config"]["digest"]))
        layers = tuple(
            Layer(described["digest"], diff_id, described["size"], step["created_by"])
            for described, diff_id, step in zip(
                manifest["layers"], config["rootfs"]["diff_ids"], config["history"], strict=True
            )
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{folder} is not a layout of ours ({error}): remove it and build again") from error
    blobs = folder / "blobs" / "sha256"
    for layer in layers:
        path = blobs / layer.digest.removeprefix("sha256:")
        if not path.is_file() or _file_digest(path) != layer.digest:
            raise BuildError(f"layer {layer.digest} in {folder} is damaged: remove the folder and build again")
    return entry["digest"], Image(blobs, layers, config["config"])


def replace_folder(new: pathlib.Path, place: pathlib.Path, trash: pathlib.Path) -> None:
    """Put a finished folder in its place; what was there goes to `trash`, all on one file system."""
    if place.exists():
        place.rename(trash)
    new.rename(place)
    shutil.rmtree(trash, ignore_errors=True)


def input_files(folder: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Yield (path, kind, content digest or link target) of everything below an image's folder, sorted.

    Of the modes only the executable bit counts: the rest depends on the umask of who cloned.
    """
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            yield name, "link", str(path.readlink())
        elif path.is_file():
            yield name, "program" if path.stat().st_mode & 0o100 else "file", _file_digest(path)


def _blob(folder: pathlib.Path, digest: str) -> bytes:
    data = (folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()
    if digest_of(data) != digest:
        raise ValueError(f"{digest} is damaged")
    return data


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest_of(data), "size": len(data)}


def _file_digest(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
