"""From a request to a program in a running sandbox: user, environment, working directory and program, then the call."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from sandbay.adapters.providers.oci.bundle import Program
from sandbay.adapters.providers.oci.calls import Call, Sandbox
from sandbay.adapters.providers.oci.execs import Execs
from sandbay.adapters.providers.oci.programs import find
from sandbay.adapters.providers.oci.root import SandboxRoot
from sandbay.adapters.providers.oci.starting import USER_FILES, ensure_workdir, image_user, start_failed
from sandbay.adapters.providers.oci.streams import NotStarted
from sandbay.domain.command import WORKSPACE, Command, argv_of, environment, workdir_of
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ImageConfig
from sandbay.ports.provider import Exit


@dataclass(frozen=True)
class Inside:
    """A running sandbox as commands see it; `env` is the allocation's, over the image's and under the request's."""

    execs: Execs
    sandbox: Sandbox
    root: SandboxRoot
    config: ImageConfig
    env: Mapping[str, str]


def run(inside: Inside, command: Command, call: Call) -> Exit:
    """Run a command to its end.

    Refuses with `user_not_found`, `no_command`, `no_shell`, `invalid_workdir`, `invalid_body`, `start_failed`.
    """
    argv = argv_of(inside.config, command)
    if isinstance(argv, Refusal):
        raise RefusedError.of(argv)
    inside.root.refuse_endless(*USER_FILES)
    user = image_user(inside.root, inside.config, command.user)
    env = environment(inside.config, user, inside.env, command.env, terminal=command.terminal is not None)
    _refuse_unwritable(argv, env)
    workdir = posixpath.normpath(posixpath.join(WORKSPACE, workdir_of(inside.config, command)))
    ensure_workdir(inside.root, workdir)
    found = find(inside.root, argv[0], search=env.get("PATH"), workdir=workdir, user=user)
    if isinstance(found, int) and command.shell is not None:
        raise RefusedError(Reason.NO_SHELL, "a shell line was asked for and the image has no /bin/sh", param="shell")
    if isinstance(found, int):
        return Exit(found)
    program = Program(argv[0] if "/" in argv[0] else found, argv, env, user, workdir, command.terminal)
    done = inside.execs.run(inside.sandbox, program, call)
    return _judge(done, workdir) if isinstance(done, NotStarted) else done


def _judge(done: NotStarted, workdir: str) -> Exit:
    if done.meaning is None:
        raise start_failed("the program could not be started", says=done.complaint)
    if isinstance(done.meaning, Reason):
        facts = {"workdir": workdir}
        raise RefusedError(done.meaning, "the user may not enter the working directory", param="workdir", details=facts)
    return Exit(done.meaning)


def _refuse_unwritable(argv: tuple[str, ...], env: Mapping[str, str]) -> None:
    """What the runtime's JSON or the kernel could not carry whole is refused, never altered."""
    texts = [("argv", part) for part in argv] + [("env", part) for pair in env.items() for part in pair]
    for param, text in texts:
        if "\0" in text or not _is_unicode(text):
            raise RefusedError(Reason.INVALID_BODY, "a NUL byte, or text that is not Unicode", param=param)
    if any(not name or "=" in name for name in env):
        raise RefusedError(Reason.INVALID_BODY, "a variable's name is empty or holds an equals sign", param="env")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
