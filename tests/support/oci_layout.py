"""Tiny OCI layouts from Python data, honest or hostile.

    layout = Layout(tmp_path / "web")
    image = layout.image(layers=[*busybox_layers(), [file("etc/which", b"web")]], config=BUSYBOX_CONFIG)
    image.manifest_digest, image.image_id, image.layers[0].diff_id

A layer is a list of entries (`tests.support.tar_entries`), the bytes of a tar, or a finished `Layer` (made by
`layout.layer`, perhaps altered with `dataclasses.replace`). Everything is the same, to the byte, every time.
"""

import dataclasses
import functools
import gzip
import hashlib
import json
import pathlib
import platform as machine
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from tests.support.tar_entries import Entry, file, folder, symlink, tar

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
REF_NAME = "org.opencontainers.image.ref.name"
HOST_PLATFORM = "linux/" + {"x86_64": "amd64", "aarch64": "arm64"}.get(machine.machine(), machine.machine())
Compression = Literal["gzip", "zstd", "plain"]


def _zstd(data: bytes) -> bytes:
    from backports import zstd  # noqa: PLC0415 - only tests of zstd need it

    return zstd.compress(data)


_COMPRESSORS: Mapping[Compression, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": (LAYER_TYPE + "+gzip", lambda data: gzip.compress(data, compresslevel=1, mtime=0)),
    "zstd": (LAYER_TYPE + "+zstd", _zstd),
    "plain": (LAYER_TYPE, lambda data: data),
}


def digest_of(data: bytes) -> str:
    """Return `sha256:<hex>` of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    """A layer as manifest and config tell of it. `size` is of the blob, in bytes."""

    digest: str
    diff_id: str
    size: int
    media_type: str


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """An image in a layout. `descriptor` is its entry in an index."""

    manifest_digest: str
    image_id: str
    layers: tuple[Layer, ...]
    descriptor: Mapping[str, Any]


class Layout:
    """An OCI layout folder: made empty, it grows by every call and is complete after each."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._listed: list[Mapping[str, Any]] = []
        (path / "blobs" / "sha256").mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        self._write_index()

    def blob_path(self, digest: str) -> pathlib.Path:
        """Return where a blob lies, for tests that remove or damage it."""
        return self.path / "blobs" / digest.replace(":", "/")

    def blob(self, data: bytes) -> str:
        """Store some bytes and return their digest."""
        digest = digest_of(data)
        self.blob_path(digest).write_bytes(data)
        return digest

    def layer(self, content: Sequence[Entry] | bytes, compression: Compression = "gzip") -> Layer:
        """Store a layer of entries, or of the bytes of a tar."""
        plain = content if isinstance(content, bytes) else tar(content)
        media_type, compress = _COMPRESSORS[compression]
        packed = compress(plain)
        return Layer(self.blob(packed), digest_of(plain), len(packed), media_type)

    def image(
        self,
        layers: Sequence[Sequence[Entry] | bytes | Layer],
        config: Mapping[str, Any] | None = None,
        *,
        platform: str = HOST_PLATFORM,
        ref: str | None = None,
        compression: Compression = "gzip",
        listed: bool = True,
        change_config: Mapping[str, Any] | None = None,
        change_manifest: Mapping[str, Any] | None = None,
    ) -> Image:
        """Store an image, and list it in `index.json` unless told otherwise.

        `config` is the config's inner part (Cmd, Env, User, ...), `platform` os/architecture[/variant].
        The `change_` mappings replace top-level fields of the finished documents.
        """
        stored = tuple(each if isinstance(each, Layer) else self.layer(each, compression) for each in layers)
        where = dict(zip(("os", "architecture", "variant"), platform.split("/"), strict=False))
        rootfs = {"type": "layers", "diff_ids": [layer.diff_id for layer in stored]}
        inner = {**where, "config": config or {}, "rootfs": rootfs, **(change_config or {})}
        config_part = self._document(CONFIG_TYPE, inner)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config_part,
            "layers": [{"mediaType": la.media_type, "digest": la.digest, "size": la.size} for la in stored],
            **(change_manifest or {}),
        }
        descriptor = {**self._document(MANIFEST_TYPE, manifest), "platform": where}
        self._list(descriptor, ref, listed=listed)
        return Image(descriptor["digest"], config_part["digest"], stored, descriptor)

    def index(self, images: Sequence[Image], *, ref: str | None = None) -> str:
        """Store an index of images made with `listed=False`, list it, and return its digest."""
        manifests = [image.descriptor for image in images]
        document = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests}
        descriptor = self._document(INDEX_TYPE, document)
        self._list(descriptor, ref, listed=True)
        digest: str = descriptor["digest"]
        return digest

    def _document(self, media_type: str, document: Mapping[str, Any]) -> dict[str, Any]:
        data = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        return {"mediaType": media_type, "digest": self.blob(data), "size": len(data)}

    def _list(self, descriptor: Mapping[str, Any], ref: str | None, *, listed: bool) -> None:
        if listed:
            self._listed.append({**descriptor, "annotations": {REF_NAME: ref}} if ref else descriptor)
            self._write_index()

    def _write_index(self) -> None:
        document = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": self._listed}
        (self.path / "index.json").write_text(json.dumps(document))


BUSYBOX = pathlib.Path("/bin/busybox")
BUSYBOX_CONFIG: Mapping[str, Any] = {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin", "LANG=C.UTF-8"]}


@functools.cache
def busybox_layers() -> list[list[Entry]]:
    """Return the layers of a system of 2 MB: /bin/sh and all applets, root and agent (1000), /tmp.

    Raises FileNotFoundError where Debian's busybox-static is not installed; `./dev setup` does that.
    """
    listed = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    system = [
        *(folder(name) for name in ("bin", "dev", "etc", "home", "proc", "run", "sys", "var")),
        folder("root", 0o700),
        folder("tmp", 0o1777),
        folder("home/agent", 0o750, uid=1000, gid=1000),
        file("bin/busybox", BUSYBOX.read_bytes(), 0o755),
        *(symlink(f"bin/{applet}", "busybox") for applet in listed if applet != "busybox"),
        file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n"),
        file("etc/group", "root:x:0:\nagent:x:1000:\n"),
        file("etc/hosts", "127.0.0.1\tlocalhost\n"),
    ]
    return [system]
