"""One program to be run: where, and with what input and output."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbay.domain.command import TerminalSize
from sandbay.ports.provider import Emit, OnStart


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What an exec needs to know of its sandbox.

    `execs` is a private folder on a tmpfs, `config` what the runtime started the sandbox from.
    """

    name: str
    group: PurePosixPath
    execs: Path
    config: Path


@dataclass(frozen=True)
class Call:
    """One exec's input and output. Its default standard input is empty; `on_start` is told how to steer it."""

    emit: Emit
    stdin: Iterable[bytes] = ()
    timeout: float | None = None
    cancel: threading.Event | None = None
    terminal: TerminalSize | None = None
    on_start: OnStart | None = None
