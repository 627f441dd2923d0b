"""Programs started by the runtime's own exec, the slower way, of sandboxes whose filter the runtime has installed.

It takes the filter from what it started the sandbox from, and without one there it would start programs unfiltered.
"""

import json
import socket
from collections.abc import Mapping
from pathlib import Path

from sandbay.adapters.providers.oci.bundle import Program, process
from sandbay.adapters.providers.oci.calls import Call, Sandbox
from sandbay.adapters.providers.oci.cgroups import Cgroups, exec_command
from sandbay.adapters.providers.oci.pipes import Pipes
from sandbay.adapters.providers.oci.programs import NOT_EXECUTABLE, NOT_FOUND
from sandbay.adapters.providers.oci.reaping import Reaping
from sandbay.adapters.providers.oci.runtime import Runtime, complaint, open_files
from sandbay.adapters.providers.oci.streams import START_SECONDS, NotStarted
from sandbay.adapters.providers.oci.terminal import Console
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason

_SAYS: Mapping[str, Reason | int] = {
    "chdir to cwd": Reason.INVALID_WORKDIR,
    "no such file or directory": NOT_FOUND,
    "permission denied": NOT_EXECUTABLE,
    "exec format error": NOT_EXECUTABLE,
    "text file busy": NOT_EXECUTABLE,
}
"""What the runtime says of a program that passed our look-up and still did not start: a lost race, no loader."""


class RuntimeExec:
    """Shared by all sandboxes of a provider."""

    def __init__(self, runtime: Runtime, cgroups: Cgroups, reaping: Reaping) -> None:
        """Its clients are the reaper's children."""
        self._runtime, self._cgroups, self._reaping = runtime, cgroups, reaping

    def streams(self, folder: Path, call: Call) -> Pipes | Console:
        """What the program gets as its streams."""
        return Pipes(call.stdin) if call.terminal is None else Console(folder, call.stdin, call.terminal)

    def start(self, sandbox: Sandbox, program: Program, folder: Path, streams: Pipes | Console) -> "_Client":
        """Start the runtime's client, in the exec's folder and its group of the same name.

        Refuses with `start_failed` where only the sandbox's first process has the filter.
        """
        if not _has_filter(sandbox.config):
            message = "the sandbox's first process does not answer, and nobody else may start programs there"
            raise RefusedError(Reason.START_FAILED, message)
        (folder / "process.json").write_text(json.dumps(process(program, open_files=open_files())))
        files = ["--pid-file", str(folder / "pid"), "--process", str(folder / "process.json")]
        arguments = ["--detach", *files, *streams.arguments, sandbox.name]
        prefix = self._runtime.prefix(folder / "log")
        argv = exec_command(self._cgroups, sandbox.group, folder.name, prefix, arguments)
        return _Client(self._reaping.start(argv, folder / "pid", streams.give()), folder)


def _has_filter(config: Path) -> bool:
    return bool(json.loads(config.read_text())["linux"].get("seccomp"))


class _Client:
    """How the runtime's client and then the program fare, as the reaper tells."""

    def __init__(self, answers: socket.socket, folder: Path) -> None:
        answers.settimeout(START_SECONDS)
        self._answers, self._folder = answers, folder

    def fileno(self) -> int:
        """Of the socket that the reaper answers on."""
        return self._answers.fileno()

    def started(self) -> NotStarted | None:
        """Refuses with `start_failed` when it takes too long, and with `internal` when the reaper is gone."""
        try:
            message = self._answer()
        except TimeoutError:
            raise RefusedError(Reason.START_FAILED, "the runtime took too long to start the program") from None
        # The document holds the environment, and has served.
        (self._folder / "process.json").unlink()
        if "failed" in message:
            says = complaint(self._folder / "log")
            return NotStarted(says, next((meaning for words, meaning in _SAYS.items() if words in says), None))
        return None

    def ended(self) -> int:
        """Refuses with `internal` when the reaper is gone, since then nobody knows how the program ends."""
        return self._answer()["ended"]

    def close(self) -> None:
        """Stop listening."""
        self._answers.close()

    def _answer(self) -> dict[str, int]:
        data = self._answers.recv(4096)
        if not data:
            raise RefusedError(Reason.INTERNAL, "how the command ended is not known")
        message: dict[str, int] = json.loads(data)
        return message
