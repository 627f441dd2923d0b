"""The example images' layouts, built by the product's own builder and kept in the checkout for the next run."""

import fcntl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.builders.builder import HostBuilder
from sandbay.adapters.builders.cache import BuildCache
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.app.installation import host_platform
from sandbay.app.publish_inputs import Prepared, prepare
from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.ids import PublishId, UploadId
from sandbay.domain.publish import IMAGE_BASE, Base, Bootstrap, Inputs, PublishOrder, origin_of
from sandbay.domain.release import Variant
from sandbay.engine.context import ArchiveContext
from sandbay.ports.builder import BuildOrder
from sandbay.ports.image_source import ImageSource, Wanted
from sandbay.sdk.folder import FolderTar

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "images"
BUILT = ROOT / "build" / "example-images"
ON_BASE = ("review", "web", "design", "commercial")


def build() -> Path:
    """Build them, `base` first and the others side by side, where a file changed; the folder with a layout for each."""
    BUILT.mkdir(parents=True, exist_ok=True)
    BUILT.chmod(0o711)
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        workshop = _Workshop()
        workshop.build("base")
        with ThreadPoolExecutor() as side_by_side:
            list(side_by_side.map(workshop.build, ON_BASE))
    return BUILT


class _Workshop:
    """Each image after what it stands on; what was built from the same inputs before is taken from the cache."""

    def __init__(self) -> None:
        self._blobs = FolderBlobs(BUILT / "blobs")
        self._cache = BuildCache(BUILT / "cache")
        self._builder = HostBuilder(BUILT / "work", host_platform(), _open, self._cache)
        self._variants: dict[str, Variant] = {}

    def build(self, name: str) -> None:
        tar = BUILT / f"{name}.context.tar"
        tar.write_bytes(b"".join(FolderTar(IMAGES / name)))
        with closing(ArchiveContext(tar)) as context:
            prepared = prepare(context, PublishOrder(UploadId("")))
            base = prepared.recipe.base
            below = self._below(base)
            order = BuildOrder(
                publish=PublishId(name),
                key=self._key(prepared, below),
                platform=host_platform(),
                context=context,
                containerfile=prepared.containerfile,
                bases={base: below},
                blobs=self._blobs,
            )
            with self._builder.build(order, _quietly, threading.Event()) as source:
                (variant,) = source.read(Wanted([host_platform()]), self._blobs, lambda *_: None)
        link = BUILT / name
        link.unlink(missing_ok=True)
        link.symlink_to(self._cache.find(order.key) or "missing")
        self._variants[name] = variant

    def _below(self, base: str) -> Variant | Bootstrap:
        origin = origin_of(base)
        return origin if isinstance(origin, Bootstrap) else self._variants[base.removeprefix(IMAGE_BASE)]

    def _key(self, prepared: Prepared, below: Variant | Bootstrap) -> str:
        """As publishing has it, so that an installation with this cache builds nothing again."""
        base = prepared.recipe.base
        digest = below.digest if isinstance(below, Variant) else sha256(canonical([base, self._builder.version]))
        bases = (Base(base, digest or ""),)
        platform = str(host_platform())
        return Inputs(prepared.files, prepared.dockerfile, bases, platform, self._builder.version).digest


def _open(folder: Path) -> ImageSource:
    return LayoutSource(lambda: FolderTree(folder))


def _quietly(text: str) -> None:
    """A build that fails has its last words in what it raises."""
