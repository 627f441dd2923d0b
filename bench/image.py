"""The images that are measured: layouts made here, from numbers alone, with the same trees every time.

`BIG` stands for a Python stack: about 637 MB in 20,800 entries, 233 MB packed, five layers. Sizes of files follow a
log-normal distribution with a long tail, as those of distributions do; what is in them compresses as programs and
libraries do. `SIBLING` shares the two lowest layers with it. `SMALL` is busybox, for starts.
"""

import hashlib
import itertools
import json
import os
import random
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from bench.host import UnmeasurableError
from tools.machine import ROOT

_CACHE = ROOT / ".cache" / "bench"
_VERSION = 1
"""Of the recipes: with another one, images are made anew."""

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_BUSYBOX = Path("/bin/busybox")

_POOL = 32 * 1024**2
_WORDS, _NOISE = 1250, 0.2
"""How many words content is made of, and how much of it is noise: tuned to what gzip makes of programs."""
_SPREAD = 1.9
"""Of the logarithm of files' sizes."""
_PER_FOLDER = 11
_LINKS = 40
"""One symbolic link to so many files."""

Tar = Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A layer: its name, which decides its content, bytes of files, and how many files."""

    name: str
    size: int
    files: int


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer as it came out; `size` is packed, in bytes."""

    digest: str
    diff_id: str
    size: int


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a layout. Layers with the lowest first; `documents` are the bytes of manifest and config."""

    layout: Path
    digest: str
    config_digest: str
    layers: tuple[Layer, ...]
    documents: int

    @property
    def architecture(self) -> str:
        """That of this machine, as images spell it."""
        return _MACHINES[os.uname().machine]

    @property
    def size(self) -> int:
        """Bytes of all layers, packed."""
        return sum(layer.size for layer in self.layers)

    def blob(self, digest: str) -> Path:
        """Where a blob lies."""
        return self.layout / "blobs" / digest.replace(":", "/")


_SHARED = (Recipe("system", 210_000_000, 7_000), Recipe("runtime", 170_000_000, 5_200))


def big() -> Image:
    """The image of a cold prepare."""
    own = (
        Recipe("libraries", 130_000_000, 4_000),
        Recipe("tools", 90_000_000, 1_900),
        Recipe("app", 37_000_000, 500),
    )
    return _made("big", [partial(_tree, recipe) for recipe in _SHARED + own])


def sibling() -> Image:
    """One that shares the two lowest layers with `big`."""
    own = (Recipe("other-libraries", 150_000_000, 4_400), Recipe("other-app", 60_000_000, 1_600))
    return _made("sibling", [partial(_tree, recipe) for recipe in _SHARED + own])


def small() -> Image:
    """The image of a start."""
    if not _BUSYBOX.exists():
        raise UnmeasurableError(f"{_BUSYBOX} is not there: ./dev setup")
    return _made("small", [_busybox])


def _made(name: str, tars: Sequence[Tar]) -> Image:
    """The image of this name; on the first call ever it is made, and kept in `.cache/bench`."""
    place = _CACHE / f"{name}-{_VERSION}"
    if not place.is_dir():
        unfinished = place.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        _make(unfinished, tars)
        unfinished.rename(place)
    return _read(place)


def _read(place: Path) -> Image:
    digest = json.loads((place / "index.json").read_bytes())["manifests"][0]["digest"]
    manifest = json.loads((place / "blobs" / digest.replace(":", "/")).read_bytes())
    config = manifest["config"]["digest"]
    diff_ids = json.loads((place / "blobs" / config.replace(":", "/")).read_bytes())["rootfs"]["diff_ids"]
    layers = tuple(
        Layer(layer["digest"], diff_id, layer["size"])
        for layer, diff_id in zip(manifest["layers"], diff_ids, strict=True)
    )
    documents = sum((place / "blobs" / each.replace(":", "/")).stat().st_size for each in (digest, config))
    return Image(place, digest, config, layers, documents)


def _make(place: Path, tars: Sequence[Tar]) -> None:
    blobs = place / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    (place / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        layers = list(pool.map(partial(_pack, blobs), tars))
    config = {
        "architecture": _MACHINES[os.uname().machine],
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"]},
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _document(blobs, _CONFIG, config),
        "layers": [{"mediaType": _LAYER, "digest": layer.digest, "size": layer.size} for layer in layers],
    }
    listed = {"schemaVersion": 2, "manifests": [_document(blobs, _MANIFEST, manifest)]}
    (place / "index.json").write_text(json.dumps(listed))


def _document(blobs: Path, media_type: str, content: object) -> dict[str, object]:
    data = json.dumps(content, sort_keys=True).encode()
    name = hashlib.sha256(data).hexdigest()
    (blobs / name).write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{name}", "size": len(data)}


def _pack(blobs: Path, tar: Tar) -> Layer:
    """Write a layer's blob; gzip at its usual level, without a time."""
    packer = zlib.compressobj(6, wbits=31)
    plain, packed = hashlib.sha256(), hashlib.sha256()
    temporary = blobs / f"new-{id(tar)}"
    with temporary.open("wb") as file:
        for piece in tar():
            plain.update(piece)
            out = packer.compress(piece)
            packed.update(out)
            file.write(out)
        out = packer.flush()
        packed.update(out)
        file.write(out)
        size = file.tell()
    temporary.rename(blobs / packed.hexdigest())
    return Layer(f"sha256:{packed.hexdigest()}", f"sha256:{plain.hexdigest()}", size)


def _tree(recipe: Recipe) -> Iterator[bytes]:
    """The tar of a layer: folders of files of every size, and some links."""
    rng = random.Random(recipe.name)  # noqa: S311 - the same every time is the point
    sizes = [rng.lognormvariate(0, _SPREAD) for _ in range(recipe.files)]
    scale = recipe.size / sum(sizes)
    content = memoryview(_content())
    folders = [f"usr/lib/{recipe.name}"]
    for above in ("usr", "usr/lib", *folders):
        yield _header(above, tarfile.DIRTYPE, 0o755)
    for number, size in enumerate(int(size * scale) for size in sizes):
        if number % _PER_FOLDER == 0:
            folders.append(f"{rng.choice(folders[-40:])}/d{number:x}")
            yield _header(folders[-1], tarfile.DIRTYPE, 0o755)
        name = f"{folders[-1]}/module_{number:x}.so"
        yield _header(name, tarfile.REGTYPE, 0o755 if number % 9 == 0 else 0o644, size)
        yield from _file(content, rng.randrange(_POOL), size)
        if number % _LINKS == 0:
            yield _header(f"{name}.1", tarfile.SYMTYPE, 0o777, link=f"module_{number:x}.so")
    yield bytes(2 * tarfile.BLOCKSIZE)


def _file(content: memoryview, start: int, size: int) -> Iterator[bytes]:
    """So many bytes from somewhere in the pool on, and the padding."""
    left = size
    while left:
        piece = bytes(content[start : start + left])
        yield piece
        left, start = left - len(piece), 0
    yield bytes(-size % tarfile.BLOCKSIZE)


@cache
def _content() -> bytes:
    """What files are cut from: words of a fixed vocabulary, some far more common than others, and noise."""
    rng = random.Random(_VERSION)  # noqa: S311 - as above
    vocabulary = [rng.randbytes(rng.randint(3, 24)) for _ in range(_WORDS)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(_WORDS)))
    pool = bytearray()
    while len(pool) < _POOL:
        pool += b"".join(rng.choices(vocabulary, cum_weights=weights, k=400))
        if rng.random() < 2 * _NOISE:
            pool += rng.randbytes(int(4500 * _NOISE))
    return bytes(pool[:_POOL])


def _header(name: str, kind: bytes, mode: int, size: int = 0, link: str = "") -> bytes:
    header = tarfile.TarInfo(name)
    header.type, header.mode, header.size, header.linkname, header.mtime = kind, mode, size, link, 1_700_000_000
    return header.tobuf(tarfile.GNU_FORMAT)


def _busybox() -> Iterator[bytes]:
    """A shell and its commands."""
    program = _BUSYBOX.read_bytes()
    for above in ("bin", "etc", "tmp"):
        yield _header(above, tarfile.DIRTYPE, 0o1777 if above == "tmp" else 0o755)
    yield _header("bin/busybox", tarfile.REGTYPE, 0o755, len(program))
    yield program + bytes(-len(program) % tarfile.BLOCKSIZE)
    for command in ("sh", "echo", "cat", "sleep", "true"):
        yield _header(f"bin/{command}", tarfile.SYMTYPE, 0o777, link="busybox")
    passwd = b"root:x:0:0:root:/root:/bin/sh\n"
    yield _header("etc/passwd", tarfile.REGTYPE, 0o644, len(passwd))
    yield passwd + bytes(-len(passwd) % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)
