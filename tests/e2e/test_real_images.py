"""The two example images, built from nothing and unpacked by us, against umoci as oracle: every entry, to the byte."""

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.app.installation import host_platform
from sandbay.engine.rootfs import assemble, dismantle
from sandbay.engine.store import LayerStore
from sandbay.ports.image_source import Wanted

pytestmark = [pytest.mark.real, pytest.mark.slow]

ID_BASE = 2_000_000


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder that user namespaces can pass; pytest's own is 0700."""
    path = Path(tempfile.mkdtemp(prefix="sandbay-oracle-", dir="/var/tmp"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("name", ["base", "review"])
def test_every_entry_is_as_umoci_has_it(layouts: Path, scratch: Path, name: str) -> None:
    blobs = FolderBlobs(scratch / "blobs")
    source = LayoutSource(lambda: FolderTree(layouts / name))
    (variant,) = source.read(Wanted([host_platform()]), blobs, lambda _: None)
    store = LayerStore(scratch / "store", blobs)
    store.prepare(variant, lambda _: None)
    record = store.verified(variant.content_key)
    for folder in ("mounts", "upper", "work"):
        (scratch / folder).mkdir(mode=0o711)
    oracle = scratch / "oracle"
    subprocess.run(["umoci", "unpack", "--image", f"{layouts / name}:latest", oracle], check=True, capture_output=True)
    ours = assemble(
        record.layers_folder,
        record.lowers,
        mounts=scratch / "mounts",
        upper=scratch / "upper",
        work=scratch / "work",
        id_base=ID_BASE,
    )
    try:
        mine, theirs = entries(ours, ID_BASE), entries(oracle / "rootfs", 0)
    finally:
        dismantle(scratch / "mounts")
    assert len(theirs) > 3_000, "the oracle saw next to nothing"
    assert {path: (mine.get(path), it) for path, it in theirs.items() if mine.get(path) != it} == {}
    assert set(mine) == set(theirs)


def entries(root: Path, shift: int) -> dict[str, tuple[object, ...]]:
    """Path → kind, mode, owner less the shift, links, time, and size and content, or a link's target."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = Path(folder) / name
            it = path.lstat()
            facts: tuple[object, ...] = (stat.filemode(it.st_mode), it.st_uid - shift, it.st_gid - shift)
            if stat.S_ISLNK(it.st_mode):
                facts += (path.readlink(),)
            elif stat.S_ISREG(it.st_mode):
                facts += (it.st_nlink, it.st_size, int(it.st_mtime), hashlib.sha256(path.read_bytes()).hexdigest())
                facts += (tuple(sorted(os.listxattr(path))),)
            found[str(path.relative_to(root))] = facts
    return found
