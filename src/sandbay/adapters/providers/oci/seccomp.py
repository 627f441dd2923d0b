"""The default seccomp profile, as data: what programs of a development machine call, and nothing that steers the host.

Written in two ways: as the filter that a sandbox's spawner installs, and for the runtime where there is no spawner.

Everything not listed fails with EPERM. Left out on purpose: mounts and namespaces (mount, unshare, setns,
pivot_root, open_tree …), modules and kexec, bpf, perf, io_uring, userfaultfd, key rings, clocks of the host, swap,
reboot, quota, raw I/O ports, acct, file handles by number (open_by_handle_at), NUMA placement of other processes.
"""

from collections.abc import Mapping, Sequence

from sandbay.engine.seccomp import ENOSYS, EPERM, Rule, When, assemble

_FILES = """
access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr
flistxattr flock fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64
futimesat getcwd getdents getdents64 getxattr getxattrat lchown lchown32 lgetxattr link linkat listxattr listxattrat
llistxattr _llseek lremovexattr lseek lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat name_to_handle_at newfstatat
open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv
removexattr removexattrat rename renameat renameat2 rmdir sendfile sendfile64 setxattr setxattrat splice stat stat64
statfs statfs64 statx symlink symlinkat sync sync_file_range sync_file_range2 arm_sync_file_range syncfs tee truncate
truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes vmsplice write writev cachestat
"""
_WATCHING = """
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2
fanotify_mark inotify_add_watch inotify_init inotify_init1 inotify_rm_watch _newselect poll ppoll ppoll_time64
pselect6 pselect6_time64 select signalfd signalfd4 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime
timerfd_settime64 io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit
"""
_MEMORY = """
brk get_mempolicy madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall mmap
mmap2 mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect process_madvise
process_mrelease remap_file_pages
"""
_PROCESSES = """
alarm arch_prctl capget capset chroot execve execveat exit exit_group fork vfork futex futex_requeue futex_time64
futex_wait futex_waitv futex_wake getcpu getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32
getitimer getpgid getpgrp getpid getppid getpriority getrandom getresgid getresgid32 getresuid getresuid32 getrlimit
get_robust_list getrusage getsid get_thread_area gettid getuid getuid32 ioctl ioprio_get ioprio_set kill modify_ldt
nanosleep pause pidfd_getfd pidfd_open pidfd_send_signal pipe pipe2 prctl prlimit64 process_vm_readv process_vm_writev
ptrace restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo riscv_hwprobe riscv_flush_icache breakpoint cacheflush
set_tls sched_getaffinity sched_getattr sched_getparam sched_get_priority_max sched_get_priority_min
sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam
sched_setscheduler sched_yield seccomp setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32
setitimer setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32
setrlimit set_robust_list setsid set_thread_area set_tid_address setuid setuid32 sigaltstack sigprocmask sigreturn
sysinfo tgkill time times tkill ugetrlimit uname wait4 waitid waitpid landlock_add_rule landlock_create_ruleset
landlock_restrict_self clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep
clock_nanosleep_time64 gettimeofday timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64
timer_settime timer_settime64
"""
_TALKING = """
accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg recvmmsg_time64 recvmsg
send sendmmsg sendmsg sendto setsockopt shutdown socketcall socketpair ipc mq_getsetattr mq_notify mq_open
mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd semctl
semget semop semtimedop semtimedop_time64 shmat shmctl shmdt shmget
"""

NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEW* of cgroup, uts, ipc, user, pid, net and mount; that of time does not exist for clone."""

_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_ALL_BITS = 0xFFFFFFFF
# First and number, a power of two, of those that are allowed: all but ALG (38) and VSOCK (40), which reach parts of the
# kernel that no namespace divides. Told by bits, since the kernel looks at no more than 32 of them: to a comparison,
# 38 with a bit above is a large number.
_SOCKET_FAMILIES = ((0, 32), (32, 4), (36, 2), (39, 1), (41, 1), (42, 2), (44, 4))

_NAMES = frozenset(name for group in (_FILES, _WATCHING, _MEMORY, _PROCESSES, _TALKING) for name in group.split())
RULES: Sequence[Rule] = (
    Rule(tuple(sorted(_NAMES))),
    Rule(("clone",), (When(0, NAMESPACE_FLAGS, 0),)),
    # Its flags lie in memory, out of the filter's sight; ENOSYS makes the C library use clone.
    Rule(("clone3",), error=ENOSYS),
    Rule(("personality",), tuple(When(0, _ALL_BITS, value) for value in _PERSONALITIES)),
    Rule(("socket",), tuple(When(0, _ALL_BITS - (count - 1), first) for first, count in _SOCKET_FAMILIES)),
)

# Without x32, which kernels have off unless told otherwise. Every architecture more makes each start by the runtime
# longer, since it compiles the filter anew each time.
_ARCHITECTURES: Mapping[str, Mapping[str, str]] = {
    "x86_64": {"x86_64": "SCMP_ARCH_X86_64", "i386": "SCMP_ARCH_X86"},
    "aarch64": {"aarch64": "SCMP_ARCH_AARCH64", "arm": "SCMP_ARCH_ARM"},
    "riscv64": {"riscv64": "SCMP_ARCH_RISCV64"},
}
"""By `platform.machine()`, what its programs are built for: our name, and the runtime's."""


def compiled(machine: str) -> bytes | None:
    """The filter as the kernel takes it, for `platform.machine()`; None where the numbers of calls are not known.

    Calls newer than all that we know are missing (ENOSYS) rather than forbidden, so that programs do without; runc
    does the same.
    """
    try:
        return assemble(list(_ARCHITECTURES[machine]), RULES, unknown=ENOSYS)
    except (KeyError, ValueError):
        return None


def profile(machine: str) -> dict[str, object]:
    """The profile as the OCI runtime specification writes it, for `platform.machine()`."""
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "architectures": list(_ARCHITECTURES.get(machine, {}).values()),
        "syscalls": [written for rule in RULES for written in _written(rule)],
    }


def _written(rule: Rule) -> Sequence[dict[str, object]]:
    """More than one: conditions of one entry would all have to hold."""
    names: dict[str, object] = {"names": list(rule.names)}
    if rule.error:
        return [{**names, "action": "SCMP_ACT_ERRNO", "errnoRet": rule.error}]
    allowed = {**names, "action": "SCMP_ACT_ALLOW"}
    return [{**allowed, "args": [_condition(when)]} for when in rule.when] or [allowed]


def _condition(when: When) -> dict[str, object]:
    return {"index": when.argument, "value": when.mask, "valueTwo": when.value, "op": "SCMP_CMP_MASKED_EQ"}
