/* PID 1 of a sandbox: reaps every orphan, and starts the programs that the node asks for (docs/adr/0009).
 *
 * Its standard input is a file of `struct sock_filter`, the filter of system calls of all that will ever run in here;
 * without it, it ends with 2. It holds both ends of a SOCK_SEQPACKET pair, 3 and 4. The node, which may do anything on
 * this host, takes a copy of the second (pidfd_getfd), and so does the next node after it. A request is `struct
 * request`, with the descriptors of `enum passed`, less the streams for a program that gets a terminal. The document is
 * a memory file of `groups (32 bits each), program\0 folder\0 argument\0 … NAME=value\0 …`, which the child alone
 * reads: nothing of variable length ever reaches PID 1. Answers go to the socket that came with the request. Whoever
 * runs in here is hostile and has the same user id; `main` says what keeps it off. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OWN = 3, NODE = 4, MASTER = 4, MOST = 65536, MAGIC = 0x53424e32 /* changes with any of what follows */ };
enum passed { ANSWERS, GROUP, DOCUMENT, STREAMS, WITH_STREAMS = STREAMS + 3 };
struct request { uint32_t magic, size, uid, gid, groups, arguments, variables; uint16_t rows, columns; };
enum kind { STARTED = 1, ENDED, NOT_SET_UP, NO_FOLDER, NO_PROGRAM }; /* value: 0, wait status, then errno */
struct answer { uint32_t kind; int32_t value; };
union handed { char space[CMSG_SPACE(WITH_STREAMS * sizeof(int))]; struct cmsghdr head; };

static pid_t running[MOST]; /* by the descriptor that its end is told on; 0: none */
static int highest, answers; /* the highest such descriptor ever; in a child, its own */

static ssize_t tell(int to, enum kind kind, int value, int terminal) {
  struct answer answer = { kind, value };
  struct iovec part = { &answer, sizeof answer };
  union handed to_hand = { { 0 } };
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &to_hand };
  to_hand.head.cmsg_len = CMSG_LEN(sizeof(int)), to_hand.head.cmsg_level = SOL_SOCKET;
  to_hand.head.cmsg_type = SCM_RIGHTS, memcpy(CMSG_DATA(&to_hand.head), &terminal, sizeof terminal);
  if (terminal >= 0) message.msg_controllen = CMSG_SPACE(sizeof(int));
  return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void give_up(enum kind kind, int error) { tell(answers, kind, error, -1), _exit(127); }
static void must(long result) { if (result < 0) give_up(NOT_SET_UP, errno); }

static char *text(char **at, char *end) {
  char *found = *at, *nul = memchr(found, 0, end - found);
  return nul ? *at = nul + 1, found : (give_up(NOT_SET_UP, EBADMSG), NULL);
}

/* A terminal of the sandbox's own devpts becomes the streams; its master is for the node. */
static void open_terminal(const struct request *wish) {
  int unlocked = 0, slave, master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
  struct winsize size = { wish->rows, wish->columns, 0, 0 };
  must(master), must(ioctl(master, TIOCSPTLCK, &unlocked));
  must(slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  must(ioctl(slave, TIOCSWINSZ, &size)), must(ioctl(slave, TIOCSCTTY, 0)), must(fchown(slave, wish->uid, -1));
  must(dup2(slave, 0)), must(dup2(slave, 1)), must(dup2(slave, 2)), must(dup2(master, MASTER));
}

static void become(const struct request *wish, const int fds[], int terminal) {
  struct stat held;
  answers = fds[ANSWERS];
  must(write(fds[GROUP], "0", 1)); /* first of all: from here on whatever happens can be ended */
  must(fstat(fds[DOCUMENT], &held));
  if (held.st_size != wish->size || wish->groups > wish->size / sizeof(gid_t) || wish->arguments < 1
      || wish->arguments > wish->size || wish->variables > wish->size
      || wish->uid == (uid_t)-1 || wish->gid == (gid_t)-1) give_up(NOT_SET_UP, EBADMSG); /* -1 is "stay root" */
  char *at = mmap(NULL, wish->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[DOCUMENT], 0);
  char **argv = calloc((size_t)wish->arguments + wish->variables + 2, sizeof *argv);
  if (at == MAP_FAILED || !argv) give_up(NOT_SET_UP, ENOMEM);
  char **env = argv + wish->arguments + 1, *end = at + wish->size;
  gid_t *groups = (gid_t *)at;
  at += wish->groups * sizeof(gid_t);
  char *program = text(&at, end), *folder = text(&at, end);
  for (uint32_t i = 0; i < wish->arguments; i++) argv[i] = text(&at, end);
  for (uint32_t i = 0; i < wish->variables; i++) env[i] = text(&at, end);
  if (at != end) give_up(NOT_SET_UP, EBADMSG);
  must(setsid());
  if (terminal) open_terminal(wish);
  else for (int i = 0; i < 3; i++) must(dup2(fds[STREAMS + i], i));
  must(dup3(answers, OWN, O_CLOEXEC)), answers = OWN;
  must(syscall(SYS_close_range, terminal ? MASTER + 1 : MASTER, ~0u, 0)); /* other programs' answers among them */
  /* The kernel's choice when memory is out, before PID 1. The file belongs to the sandbox only while dumpable. */
  prctl(PR_SET_DUMPABLE, 1);
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) (void)!write(score, "100", 3), close(score);
  if (umask(022), chdir(folder)) give_up(NO_FOLDER, errno);
  must(setgroups(wish->groups, groups)), must(setresgid(wish->gid, wish->gid, wish->gid));
  must(setresuid(wish->uid, wish->uid, wish->uid));
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &(sigset_t){ 0 }, NULL);
  must(tell(answers, STARTED, 0, terminal ? MASTER : -1)); /* nobody waits for it any more: it does not run */
  if (terminal) close(MASTER);
  execve(program, argv, env), give_up(NO_PROGRAM, errno);
}

/* What is not exactly a request starts nothing; whoever sent it sees its answers' socket end. */
static void take(void) {
  struct request wish;
  struct iovec part = { &wish, sizeof wish };
  union handed got;
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &got, .msg_controllen = sizeof got };
  int fds[WITH_STREAMS], count = 0, kept = 0;
  ssize_t size = recvmsg(OWN, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  struct cmsghdr *head = size < 0 ? NULL : CMSG_FIRSTHDR(&message);
  if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
    memcpy(fds, CMSG_DATA(head), (count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int)) * sizeof(int));
  if (size == sizeof wish && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && wish.magic == MAGIC
      && (count == STREAMS || count == WITH_STREAMS) && fds[ANSWERS] < MOST) {
    pid_t child = fork();
    if (child == 0) become(&wish, fds, count == STREAMS);
    if (child < 0) tell(fds[ANSWERS], NOT_SET_UP, errno, -1);
    else running[fds[ANSWERS]] = child, kept = 1, highest = fds[ANSWERS] > highest ? fds[ANSWERS] : highest;
  }
  for (int i = kept; i < count; i++) close(fds[i]);
}

int main(int count, char **arguments) {
  if (count > 1) return arguments[1][0] != '-'; /* with any option: whoever asked knows that it can be run here */
  /* A socket could be taken by pidfd_getfd, ptrace or /proc/1/fd from in here, too. The file cannot be read by who runs
   * it, for which the kernel has made the process undumpable from its start; this is for where the file can. */
  prctl(PR_SET_DUMPABLE, 0);
  off_t size = lseek(0, 0, SEEK_END);
  struct { unsigned short length; void *code; } given = { size / 8, mmap(NULL, size, PROT_READ, MAP_PRIVATE, 0, 0) };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || given.length * 8 != size || prctl(PR_SET_SECCOMP, 2, &given)) return 2;
  munmap(given.code, size), dup2(1, 0);
  struct signalfd_siginfo told;
  int ends[2], status;
  syscall(SYS_close_range, OWN, ~0u, 0);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) || ends[0] != OWN || ends[1] != NODE) return 1;
  sigset_t all, some = { 0 };
  sigfillset(&all), sigprocmask(SIG_BLOCK, &all, NULL);
  sigaddset(&some, SIGCHLD), sigaddset(&some, SIGTERM), sigaddset(&some, SIGINT); /* `kill 1` ends the sandbox */
  struct pollfd ready[] = { { signalfd(-1, &some, SFD_CLOEXEC | SFD_NONBLOCK), POLLIN, 0 }, { OWN, POLLIN, 0 } };
  for (;; poll(ready, 2, -1)) {
    if (ready[0].revents && read(ready[0].fd, &told, sizeof told) > 0 && told.ssi_signo != SIGCHLD) return 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
      for (int fd = 0; fd <= highest; fd++)
        if (running[fd] == child) tell(fd, ENDED, status, -1), close(fd), running[fd] = 0;
    if (ready[1].revents) take();
  }
}
