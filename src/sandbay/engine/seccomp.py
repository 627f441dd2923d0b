"""What the unpacker's child may ask of the kernel once it is confined: its own files, memory and end.

Everything else fails with EPERM: no process, no program, no signal, no socket, no mount, no namespace, no other
process's memory, nothing that steers the kernel. Capabilities alone would leave much of that to root.
"""

import struct

_ALLOWED = {
    # name: (x86_64, arm64 and all that use the generic table)
    "brk": (12, 214),
    "clock_gettime": (228, 113),
    "close": (3, 57),
    "dup": (32, 23),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "fgetxattr": (193, 10),
    "flistxattr": (196, 13),
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "fstat": (5, 80),
    "ftruncate": (77, 46),
    "futex": (202, 98),
    "getdents64": (217, 61),
    "getpid": (39, 172),
    "getrandom": (318, 278),
    "gettid": (186, 178),
    "ioctl": (16, 29),
    "linkat": (265, 37),
    "lseek": (8, 62),
    "madvise": (28, 233),
    "mkdirat": (258, 34),
    "mknodat": (259, 33),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "newfstatat": (262, 79),
    "openat": (257, 56),
    "read": (0, 63),
    "readlinkat": (267, 78),
    "readv": (19, 65),
    "restart_syscall": (219, 128),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "sendfile": (40, 71),
    "sigaltstack": (131, 132),
    "statx": (332, 291),
    "symlinkat": (266, 36),
    "sync_file_range": (277, 84),
    "unlinkat": (263, 35),
    "utimensat": (280, 88),
    "write": (1, 64),
}
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column above, and how the kernel names the architecture to a filter."""

_EPERM = 1
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | _EPERM, 0x80000000
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4


def program_for(machine: str) -> bytes | None:
    """The filter as the kernel takes it, an array of `struct sock_filter`; None for a machine of no known table."""
    if machine not in _MACHINES:
        return None
    column, architecture = _MACHINES[machine]
    numbers = [row[column] for row in _ALLOWED.values()]
    return b"".join(
        (
            _instruction(_LOAD, _ARCHITECTURE_AT),
            # Calls of another architecture have numbers of their own, and nobody makes them by accident.
            _instruction(_IF_EQUAL, architecture, 1, 0),
            _instruction(_RETURN, _KILL),
            _instruction(_LOAD, _NUMBER_AT),
            *(_instruction(_IF_EQUAL, number, len(numbers) - at, 0) for at, number in enumerate(numbers)),
            _instruction(_RETURN, _REFUSE),
            _instruction(_RETURN, _ALLOW),
        )
    )


def _instruction(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_so, if_not, value)
