"""Whether a program can run, found out before the runtime is asked: its own exit code says 255 for every failure.

127 is "not there" and 126 "there, but not executable", as shells and `env` have it. The search is that of
`execvp(3)`, inside the sandbox's root; a script's interpreter counts like the script.
"""

import os
import posixpath
import stat

from sandbay.adapters.providers.oci.root import SandboxRoot, open_regular
from sandbay.domain.command import DEFAULT_PATH, User
from sandbay.domain.errors import RefusedError

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_HEAD = 256
_INTERPRETERS = 5


def find(root: SandboxRoot, name: str, *, search: str | None, workdir: str, user: User) -> str | int:
    """Where the search leads to a program that can be started; else 126 or 127."""
    folders = [""] if "/" in name else (DEFAULT_PATH if search is None else search).split(":")
    verdicts = set()
    for folder in folders:
        path = posixpath.join(workdir, folder, name)
        verdict = _judge(root, path, workdir, user)
        if verdict is None:
            return path
        verdicts.add(verdict)
    return NOT_EXECUTABLE if NOT_EXECUTABLE in verdicts else NOT_FOUND


def _judge(root: SandboxRoot, path: str, workdir: str, user: User, depth: int = 0) -> int | None:
    try:
        with root.held(path) as handle:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or not _may_execute(root, status, user):
                return NOT_EXECUTABLE
            with os.fdopen(open_regular(handle), "rb") as file:
                interpreter = interpreter_of(file.read(_HEAD))
    except (FileNotFoundError, NotADirectoryError):
        return NOT_FOUND
    except (OSError, RefusedError):
        return NOT_EXECUTABLE
    if interpreter is None:
        return None
    if depth == _INTERPRETERS:
        return NOT_EXECUTABLE
    return _judge(root, posixpath.join(workdir, interpreter), workdir, user, depth + 1)


def interpreter_of(head: bytes) -> str | None:
    """The interpreter that a file's first line asks for, or None when it is no script."""
    if not head.startswith(b"#!"):
        return None
    words = head[2:].split(b"\n", 1)[0].split()
    return os.fsdecode(words[0].split(b"\0", 1)[0]) if words else None


def _may_execute(root: SandboxRoot, status: os.stat_result, user: User) -> bool:
    mode = status.st_mode
    if user.uid == 0:
        return bool(mode & 0o111)
    if root.id_inside(status.st_uid) == user.uid:
        return bool(mode & stat.S_IXUSR)
    if root.id_inside(status.st_gid) in (user.gid, *user.groups):
        return bool(mode & stat.S_IXGRP)
    return bool(mode & stat.S_IXOTH)
