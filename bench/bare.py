"""The shortest way to a sandbox: one overlay mount and one call of the runtime, same layers and limits, nothing else.

No record, no user namespace, no id mapping, no seccomp filter, no proof of anything: what a person would type.
"""

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from bench.host import UnmeasurableError, run
from bench.node import SIZE
from sandbay.engine import linux

COMMAND = "mount -t overlay … && runc run --bundle B NAME"
EXEC_COMMAND = "runc exec NAME /bin/echo x"
_PERIOD = 100_000


@dataclass(frozen=True)
class Bare:
    """Root file systems from `lowers`, topmost first; everything of it in `place`, which exists."""

    place: Path
    lowers: Sequence[Path]
    runtime: str = "runc"

    @contextlib.contextmanager
    def bundle(self, *argv: str) -> Iterator[tuple[str, Path]]:
        """A name and a mounted bundle for one sandbox, gone at the end."""
        name = f"bare-{uuid4().hex[:12]}"
        bundle = self.place / name
        for inner in ("rootfs", "upper", "work"):
            (bundle / inner).mkdir(parents=True)
        lowers = ":".join(map(str, self.lowers))
        options = f"lowerdir={lowers},upperdir={bundle}/upper,workdir={bundle}/work"
        linux.mount("overlay", bundle / "rootfs", "overlay", 0, options)
        try:
            (bundle / "config.json").write_text(json.dumps(self._spec(argv)))
            yield name, bundle
        finally:
            linux.umount2(bundle / "rootfs")
            shutil.rmtree(bundle)

    def first_output(self, *argv: str) -> float:
        """Seconds from nothing to the first byte of output; it is taken down afterwards."""
        begun = time.perf_counter()
        with self.bundle(*argv) as (name, bundle):
            command = [*self._runtime, "run", "--bundle", bundle, name]
            return first_byte(command) - begun

    def start(self, name: str, bundle: Path) -> None:
        """Start the bundle's program and leave it running."""
        nothing = subprocess.DEVNULL
        command = [*self._runtime, "run", "--detach", "--bundle", bundle, name]
        subprocess.run(command, check=True, stdin=nothing, stdout=nothing, stderr=nothing)

    def pid(self, name: str) -> int:
        """The host's pid of its first process."""
        return int(json.loads(run(*self._runtime, "state", name))["pid"])

    def exec(self, name: str, *argv: str) -> float:
        """Seconds to the first byte of output of a command in it."""
        begun = time.perf_counter()
        return first_byte([*self._runtime, "exec", name, *argv]) - begun

    def delete(self, name: str) -> None:
        """End and forget it."""
        run(*self._runtime, "delete", "--force", name)

    def _spec(self, argv: Sequence[str]) -> dict[str, Any]:
        """What the runtime proposes, with our program and limits, without a terminal."""
        proposed = json.loads(self._proposed)
        limits = {
            "memory": {"limit": SIZE.memory},
            "cpu": {"quota": round(SIZE.cpus * _PERIOD), "period": _PERIOD},
            "pids": {"limit": SIZE.pids},
        }
        return {
            **proposed,
            "process": {**proposed["process"], "terminal": False, "args": list(argv)},
            "root": {"path": "rootfs", "readonly": False},
            "linux": {**proposed["linux"], "resources": limits},
        }

    @cached_property
    def _proposed(self) -> str:
        run(self.runtime, "spec", "--bundle", self.place)
        return (self.place / "config.json").read_text()

    @property
    def _runtime(self) -> tuple[str | Path, ...]:
        return (self.runtime, "--root", self.place / "state")


def first_byte(command: Sequence[str | Path]) -> float:
    """When a program's first byte of output came, by the clock of `time.perf_counter`. Waits for its end."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        if process.stdout is None or not process.stdout.read(1):
            raise UnmeasurableError(f"{' '.join(map(str, command))} said nothing")
        return time.perf_counter()
