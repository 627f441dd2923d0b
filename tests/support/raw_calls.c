/* Makes the system calls of its arguments, NUMBER:FIRST:SECOND:THIRD each, and prints each one's errno, 0 for none.
 * With `i` in front, as a program of 32 bits makes them. A call that makes a process makes one that ends at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long call(int narrow, const unsigned long *of) {
#ifdef __x86_64__
  if (narrow) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(of[0]), "b"(of[1]), "c"(of[2]), "d"(of[3]) : "memory");
    return errno = (int)result < 0 ? -(int)result : 0, (int)result;
  }
#endif
  return syscall(of[0], of[1], of[2], of[3], 0, 0, 0);
}

int main(int count, char **arguments) {
  for (int i = 1; i < count; i++) {
    unsigned long of[4] = { 0 };
    char *at = arguments[i];
    int narrow = *at == 'i';
    pid_t self = getpid();
    at += narrow;
    for (int part = 0; part < 4 && *at; part++, at += *at == ':') of[part] = strtoul(at, &at, 0);
    errno = 0;
    long result = call(narrow, of);
    if (getpid() != self) _exit(0);
    printf("%d\n", result < 0 ? errno : 0);
  }
  return fflush(stdout);
}
