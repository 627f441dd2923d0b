"""A sandbox's root file system: shared layers, id-mapped for it alone, under a layer of its own.

    mounts/l        one id-mapped, read-only bind of the folder with all layers
    mounts/rootfs   the overlay: the image's layers by their short names, topmost first, and `upper`

Layers keep the image's owners on disk; the mapping makes owner 0 of the image `id_base` here, and file
capabilities follow. Nothing is shifted but `upper`, which belongs to one sandbox. All of it is `nodev`: device
nodes that images carry are dead.
"""

import contextlib
import errno
import os
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbay.engine import linux
from sandbay.engine.metadata import PLAIN_MODE, is_implied_root

_LAYERS = "l"
_ROOTFS = "rootfs"
# Said aloud, since distributions differ: with them off, the upper folder is a plain layer.
_OPTIONS = "index=off,metacopy=off,redirect_dir=off"
_UNSAFE_IN_OPTIONS = frozenset(",:\\")


@dataclass(frozen=True, slots=True)
class _Range:
    """Ids 0 to `count` of the image are `base` and up on the host."""

    base: int
    count: int


def assemble(
    layers: Path,
    lowers: Sequence[str],
    *,
    mounts: Path,
    upper: Path,
    work: Path,
    id_base: int,
    id_count: int = 65536,
) -> Path:
    """Mount the root file system and return where it is.

    `lowers` are names in `layers`, topmost first, perhaps none. `mounts`, `upper` and `work` exist, the last two
    in one file system; an `upper` that is in use keeps what it has. Raises OSError; nothing is mounted then.
    """
    ids = _Range(id_base, id_count)
    for path in (upper, work):
        if not _UNSAFE_IN_OPTIONS.isdisjoint(str(path)):
            raise ValueError("a path with a comma, colon or backslash cannot be an option of a mount")
    rootfs = mounts / _ROOTFS
    try:
        (mounts / _LAYERS).mkdir(mode=0o700, exist_ok=True)
        rootfs.mkdir(mode=PLAIN_MODE, exist_ok=True)
        if lowers:
            _bind_mapped(layers, mounts / _LAYERS, ids)
        if not os.listdir(upper):
            _describe_root(upper, [layers / name for name in lowers], ids)
        _run_in_thread(lambda: _mount_overlay(lowers, mounts / _LAYERS, rootfs, upper, work))
        _check(rootfs, max(len(lowers), 1))
    except BaseException:
        dismantle(mounts)
        raise
    return rootfs


def dismantle(mounts: Path) -> None:
    """Undo `assemble`, also what it left half-made; may be repeated. `mounts` itself stays."""
    for name in (_ROOTFS, _LAYERS):
        path = mounts / name
        while _unmount(path):
            pass
        with contextlib.suppress(FileNotFoundError):
            path.rmdir()


def _unmount(path: Path) -> bool:
    """Whether something was mounted there."""
    try:
        linux.umount2(path, linux.UMOUNT_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return False
        if error.errno != errno.EBUSY:
            raise
        # Something still stands in it: out of sight now, gone when that has left.
        linux.umount2(path, linux.UMOUNT_NOFOLLOW | linux.MNT_DETACH)
    return True


def idmap_supported(scratch: Path) -> str | None:
    """Why root file systems cannot be assembled in this folder's file system, or None when one just was."""
    with tempfile.TemporaryDirectory(prefix="fit-", dir=scratch) as folder:
        place = Path(folder)
        for name in ("layers/a", "layers/b", "mounts", "upper", "work"):
            (place / name).mkdir(parents=True)
        try:
            mounts, upper, work = place / "mounts", place / "upper", place / "work"
            rootfs = assemble(
                place / "layers", ("a", "b"), mounts=mounts, upper=upper, work=work, id_base=100_000, id_count=65_536
            )
            (rootfs / "written").touch()
        except OSError as error:
            return f"an overlay over id-mapped layers cannot be mounted here: {error.strerror}"
        finally:
            dismantle(place / "mounts")
    return None


def _bind_mapped(layers: Path, target: Path, ids: _Range) -> None:
    tree = linux.open_tree(linux.AT_FDCWD, layers, linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC)
    try:
        attributes = linux.MOUNT_ATTR_IDMAP | linux.MOUNT_ATTR_RDONLY | linux.MOUNT_ATTR_NODEV
        namespace = _namespaces.of(ids)
        linux.mount_setattr(tree, set_attributes=attributes, user_namespace=namespace, propagation=linux.MS_PRIVATE)
        linux.move_mount(tree, target)
    finally:
        os.close(tree)


def _describe_root(upper: Path, lowers: Sequence[Path], ids: _Range) -> None:
    """Overlayfs shows the root as its topmost layer has it: make that what the image says."""
    owner, group, mode = 0, 0, PLAIN_MODE
    for lower in lowers:
        root = os.open(lower, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not is_implied_root(root):
                status = os.fstat(root)
                owner, group, mode = status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)
                break
        finally:
            os.close(root)
    os.chown(upper, ids.base + owner, ids.base + group)
    upper.chmod(mode)


def _mount_overlay(lowers: Sequence[str], layers: Path, rootfs: Path, upper: Path, work: Path) -> None:
    """Names are relative to where this thread stands: the kernel silently cuts options at one page."""
    linux.unshare(linux.CLONE_FS)
    os.chdir(layers)
    options = f"lowerdir={':'.join(lowers) or '.'},upperdir={upper},workdir={work},{_OPTIONS}"
    linux.mount("overlay", rootfs, "overlay", linux.MS_NODEV, options)


def _run_in_thread(act: Callable[[], None]) -> None:
    """Run in a thread of its own, which is what has a working directory of its own; raise what it raises."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failed.append(error)

    thread = threading.Thread(target=run, name="mount")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _check(rootfs: Path, lowers: int) -> None:
    """The kernel may mount fewer layers than it was told of, and read-only, without a word."""
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        mount, _, file_system = line.partition(" - ")
        if _unescaped(mount.split(" ")[4]) != str(rootfs):
            continue
        options = file_system.split(" ")[2].split(",")
        shown = sum(1 + option.count(":") for option in options if option.startswith(("lowerdir=", "lowerdir+=")))
        if shown == lowers and "rw" in options:
            return
    raise OSError(errno.EIO, f"the kernel did not mount all {lowers} layers")


def _unescaped(path: str) -> str:
    """Mountinfo spells white space and backslashes in octal."""
    for character in " \t\n\\":
        path = path.replace(f"\\{ord(character):03o}", character)
    return path


class _Namespaces:
    """User namespaces that stand for mappings, one for each range, kept open for the next time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[_Range, int] = {}

    def of(self, ids: _Range) -> int:
        with self._lock:
            if ids not in self._open:
                self._open[ids] = _user_namespace(ids)
            return self._open[ids]


_namespaces = _Namespaces()


def _user_namespace(ids: _Range) -> int:
    """A user namespace with this mapping. A child lives in it until we hold it: no fork of this process."""
    command = ("unshare", "--user", "cat")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        try:
            if child.stdin is None or child.stdout is None:
                raise ValueError("both streams are pipes")
            # An echo says that it is `cat` now, and so in its namespace.
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(b".")
            if child.stdout.read(1) != b".":
                raise OSError(errno.EPERM, "user namespaces cannot be made here")
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{child.pid}/{name}").write_text(f"0 {ids.base} {ids.count}\n")
            return os.open(f"/proc/{child.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            child.kill()
