/* What a hostile program tries on process PID (first argument): the name of each attempt that works, one a line. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void said(const char *what, long result) { if (result >= 0) puts(what), fflush(stdout); }

static int opened(const char *format, int pid, int flags) {
  char path[64];
  snprintf(path, sizeof path, format, pid);
  return open(path, flags);
}

int main(int count, char **arguments) {
  int pid = count > 1 ? atoi(arguments[1]) : 0, handle = syscall(SYS_pidfd_open, pid, 0);
  char byte;
  struct iovec mine = { &byte, 1 }, theirs = { (void *)main, 1 };
  said("reached", handle);
  for (int fd = 0; fd < 6; fd++) said("pidfd_getfd", syscall(SYS_pidfd_getfd, handle, fd, 0));
  said("fd", opened("/proc/%d/fd", pid, O_RDONLY | O_DIRECTORY));
  said("fd/0", opened("/proc/%d/fd/0", pid, O_RDONLY));
  said("mem", opened("/proc/%d/mem", pid, O_RDWR));
  said("exe", opened("/proc/%d/exe", pid, O_RDONLY));
  said("environ", opened("/proc/%d/environ", pid, O_RDONLY));
  said("process_vm_readv", process_vm_readv(pid, &mine, 1, &theirs, 1, 0));
  said("seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
  long attached = ptrace(PTRACE_ATTACH, pid, 0, 0);
  said("attach", attached);
  if (attached >= 0) waitpid(pid, NULL, __WALL);
  return 0;
}
