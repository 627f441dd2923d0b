"""What the unpacker's child may ask of the kernel once it is confined: its own files, memory and end.

Everything else fails with EPERM: no process, no program, no signal, no socket, no mount, no namespace, no other
process's memory, nothing that steers the kernel. Capabilities alone would leave much of that to root.

Tried with CPython 3.11, 3.12 and 3.13 on x86_64. What only starts an interpreter, a thread or a module is not on it.
"""

from sandbay.engine.seccomp import Rule, assemble

_ALLOWED = """
brk clock_gettime close dup exit exit_group fchmod fchmodat fchown fchownat fcntl fgetxattr flistxattr fremovexattr
fsetxattr fstat ftruncate futex getdents64 getpid getrandom gettid ioctl linkat lseek madvise mkdirat mknodat mmap
mprotect mremap munmap newfstatat openat read readlinkat readv restart_syscall rt_sigaction rt_sigprocmask
rt_sigreturn sched_yield sendfile sigaltstack statx symlinkat sync_file_range unlinkat utimensat write
"""
_MACHINES = ("x86_64", "aarch64")


def program_for(machine: str) -> bytes | None:
    """The filter as the kernel takes it, for `platform.machine()`; None for a machine of no known table."""
    return assemble([machine], [Rule(tuple(_ALLOWED.split()))]) if machine in _MACHINES else None
