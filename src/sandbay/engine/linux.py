"""The system calls that Python 3.11 does not have, typed; every errno becomes an `OSError`.

The only home of ctypes. Wrappers add nothing to what the kernel does; what to call when is decided elsewhere.
"""

import ctypes
import os
from collections.abc import Iterable

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000

CLONE_FS = 0x00000200
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOSYMFOLLOW = 0x100
MS_BIND = 0x1000
MS_MOVE = 0x2000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000

MNT_DETACH = 0x2
UMOUNT_NOFOLLOW = 0x8

OPEN_TREE_CLONE = 0x1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 0x4
MOVE_MOUNT_T_EMPTY_PATH = 0x40

MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
MOUNT_ATTR_NOEXEC = 0x8
MOUNT_ATTR_IDMAP = 0x00100000

RESOLVE_NO_XDEV = 0x01
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08
RESOLVE_IN_ROOT = 0x10

CAP_CHOWN = 0
CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3
CAP_FSETID = 4
CAP_SYS_ADMIN = 21
CAP_MKNOD = 27
CAP_SETFCAP = 31

OVERLAYFS_MAGIC = 0x794C7630
TMPFS_MAGIC = 0x01021994
CGROUP2_MAGIC = 0x63677270
CGROUP_V1_MAGIC = 0x0027E0EB

_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

# Numbers of calls newer than 2018 are the same on every architecture.
_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_OPENAT2 = 437
_SYS_PIDFD_GETFD = 438
_SYS_MOUNT_SETATTR = 442

_CAPABILITY_VERSION_3 = 0x20080522
_SECCOMP_MODE_FILTER = 2
_FILTER_BYTES = 8

_SYNC_FILE_RANGE_WRITE = 2
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

StrPath = str | bytes | os.PathLike[str]


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]  # type: ignore[mutable-override]


class _MountAttr(ctypes.Structure):
    _fields_ = [  # type: ignore[mutable-override]
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    ]


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]  # type: ignore[mutable-override]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]  # type: ignore[mutable-override]


class _CapabilityData(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]  # type: ignore[mutable-override]


def _checked(result: int, path: StrPath | None = None) -> int:
    """The call's result, or its errno as an exception."""
    if result >= 0:
        return result
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), None if path is None else os.fsdecode(path))


def _syscall(number: int, *arguments: object) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def mount(source: StrPath, target: StrPath, kind: str = "", flags: int = 0, options: str = "") -> None:
    """`mount(2)`. The kernel silently cuts options at one page: longer ones are a `ValueError` here."""
    data = os.fsencode(options)
    if len(data) >= os.sysconf("SC_PAGE_SIZE"):
        raise ValueError(f"mount options of {len(data)} bytes do not fit into a page")
    _checked(
        _libc.mount(
            os.fsencode(source), os.fsencode(target), kind.encode() or None, ctypes.c_ulong(flags), data or None
        ),
        target,
    )


def umount2(target: StrPath, flags: int = 0) -> None:
    """`umount2(2)`."""
    _checked(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), target)


def unshare(flags: int) -> None:
    """`unshare(2)`, for the calling thread."""
    _checked(_libc.unshare(ctypes.c_int(flags)))


def setns(fd: int, kind: int = 0) -> None:
    """`setns(2)`: move the calling thread into the namespace that `fd` is."""
    _checked(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)))


def syncfs(fd: int) -> None:
    """Make everything written to the file system that `fd` is on durable."""
    _checked(_libc.syncfs(ctypes.c_int(fd)))


def start_writeback(fd: int) -> None:
    """Let the disk begin to write what is new in a file, without waiting for it: `sync_file_range(2)`."""
    whole = ctypes.c_longlong(0)
    _checked(_libc.sync_file_range(ctypes.c_int(fd), whole, whole, ctypes.c_uint(_SYNC_FILE_RANGE_WRITE)))


def pivot_root(new_root: StrPath, put_old: StrPath) -> None:
    """`pivot_root(2)`."""
    _checked(_libc.pivot_root(os.fsencode(new_root), os.fsencode(put_old)), new_root)


def openat2(folder: int, path: StrPath, flags: int, *, mode: int = 0, resolve: int = 0) -> int:
    """`openat2(2)`; the descriptor is close-on-exec."""
    how = _OpenHow(flags | os.O_CLOEXEC, mode, resolve)
    arguments = (ctypes.c_int(folder), os.fsencode(path), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))
    return _checked(_syscall(_SYS_OPENAT2, *arguments), path)


def pidfd_getfd(handle: int, number: int) -> int:
    """`pidfd_getfd(2)`: a copy of another process's descriptor; close-on-exec."""
    return _checked(_syscall(_SYS_PIDFD_GETFD, ctypes.c_int(handle), ctypes.c_int(number), ctypes.c_uint(0)))


def open_tree(folder: int, path: StrPath, flags: int) -> int:
    """`open_tree(2)`: a descriptor of a mount, with `OPEN_TREE_CLONE` of a detached copy of it."""
    return _checked(_syscall(_SYS_OPEN_TREE, ctypes.c_int(folder), os.fsencode(path), ctypes.c_uint(flags)), path)


def move_mount(source: int, target: StrPath) -> None:
    """`move_mount(2)`: attach the detached mount `source` at the path `target`."""
    arguments = (ctypes.c_int(source), b"", ctypes.c_int(AT_FDCWD), os.fsencode(target))
    _checked(_syscall(_SYS_MOVE_MOUNT, *arguments, ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH)), target)


def mount_setattr(
    fd: int, *, set_attributes: int, user_namespace: int = -1, propagation: int = 0, recursive: bool = False
) -> None:
    """`mount_setattr(2)` on the mount `fd`; `user_namespace` is the mapping that goes with `MOUNT_ATTR_IDMAP`."""
    attributes = _MountAttr(set_attributes, 0, propagation, max(user_namespace, 0))
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    arguments = (ctypes.c_int(fd), b"", ctypes.c_uint(flags), ctypes.byref(attributes), size)
    _checked(_syscall(_SYS_MOUNT_SETATTR, *arguments))


def _prctl(option: int, value: int) -> int:
    zero = ctypes.c_ulong(0)
    return int(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero))


def set_no_new_privileges() -> None:
    """No `execve` of this thread or its children gains privileges, for ever."""
    _checked(_prctl(_PR_SET_NO_NEW_PRIVS, 1))


def set_dumpable(dumpable: bool) -> None:  # noqa: FBT001 - the kernel's own switch
    """Whether others of the same user may trace this process or read its memory."""
    _checked(_prctl(_PR_SET_DUMPABLE, int(dumpable)))


def set_seccomp_filter(program: bytes) -> None:
    """Let this filter, an array of `struct sock_filter`, judge every further call of this thread, for ever."""
    described = _FilterProgram(len(program) // _FILTER_BYTES, program)
    zero = ctypes.c_ulong(0)
    mode = ctypes.c_ulong(_SECCOMP_MODE_FILTER)
    _checked(_libc.prctl(ctypes.c_int(_PR_SET_SECCOMP), mode, ctypes.byref(described), zero, zero))


def set_child_subreaper() -> None:
    """Orphans below this process become its children."""
    _checked(_prctl(_PR_SET_CHILD_SUBREAPER, 1))


def keep_capabilities(keep: Iterable[int]) -> None:
    """Give up every capability but these, from the bounding set too; none is inheritable."""
    kept = frozenset(keep)
    capability = 0
    while _prctl(_PR_CAPBSET_READ, capability) >= 0:
        if capability not in kept:
            _checked(_prctl(_PR_CAPBSET_DROP, capability))
        capability += 1
    mask = sum(1 << capability for capability in kept)
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    words = [_CapabilityData(part, part, 0) for part in (mask & 0xFFFFFFFF, mask >> 32)]
    _checked(_libc.capset(ctypes.byref(header), (_CapabilityData * 2)(*words)))


def file_system_magic(fd: int) -> int:
    """The type of the file system that `fd` is on, one of the `…_MAGIC` numbers of `statfs(2)`."""
    buffer = ctypes.create_string_buffer(256)
    _checked(_libc.fstatfs(ctypes.c_int(fd), buffer))
    return int(ctypes.c_long.from_buffer(buffer).value)
