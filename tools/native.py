"""./dev native: build native/spawner.c for each kind of processor; --check only compares.

The programs lie built in the package, since whoever installs it need not have a compiler. `native/built.json` says
from what and by what: with the same source, compiler and C library, a build gives the same bytes.
"""

import argparse
import dataclasses
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.machine import ROOT, SYSTEM_PATH, CannotContinueError, Part, as_root, must_run, say

SOURCE = ROOT / "native" / "spawner.c"
RECORD = ROOT / "native" / "built.json"
PROGRAMS = ROOT / "src" / "sandbay" / "adapters" / "providers" / "oci" / "native"
_FETCHED = ROOT / ".cache" / "native"
_FLAGS = (
    *("-std=c11", "-Os", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-nostdinc", "-nostdlib"),
    # Nothing that differs from one build to the next, or that the program has no use for.
    *("-fno-pie", "-no-pie", "-fno-stack-protector", "-fno-asynchronous-unwind-tables"),
    *("-Wl,--build-id=none", "-Wl,--gc-sections"),
)


@dataclasses.dataclass(frozen=True)
class Target:
    """One kind of processor, as the kernel names it and as Debian does."""

    machine: str
    debian: str

    @property
    def compiler(self) -> str:
        """The program, of Debian's package gcc or gcc-…-linux-gnu."""
        return f"{self.machine}-linux-gnu-gcc"

    @property
    def program(self) -> Path:
        """What is shipped."""
        return PROGRAMS / f"spawner-{self.machine}"

    @property
    def musl(self) -> Path:
        """Where the package musl-dev lies: installed for this machine's own kind, else fetched."""
        return Path("/usr") if self.machine == platform.machine() else _FETCHED / self.machine / "usr"

    @property
    def libraries(self) -> Path:
        """The C library and what starts a program."""
        return self.musl / "lib" / f"{self.machine}-linux-musl"

    def lacks(self) -> str | None:
        """What this machine lacks to build for it."""
        if shutil.which(self.compiler, path=SYSTEM_PATH) is None:
            return self.compiler
        return None if (self.libraries / "libc.a").exists() else f"musl-dev for {self.debian}"

    def made_by(self) -> dict[str, str]:
        """The compiler's version and the C library's digest."""
        version = subprocess.run([self.compiler, "--version"], capture_output=True, text=True, check=True).stdout
        return {"compiler": version.splitlines()[0], "libc": _digest(self.libraries / "libc.a")}

    def build(self, output: Path) -> None:
        """Build it, without a trace of this machine."""
        start, end = (self.libraries / name for name in ("crt1.o", "crtn.o"))
        headers = self.musl / "include" / f"{self.machine}-linux-musl"
        inputs: list[Part] = [start, self.libraries / "crti.o", SOURCE, self.libraries / "libc.a", "-lgcc", end]
        command: list[Part] = [self.compiler, *_FLAGS, "-isystem", headers, "-o", output, *inputs]
        must_run(command, doing=f"Building for {self.machine}")


TARGETS = (Target("x86_64", "amd64"), Target("aarch64", "arm64"))


def problems() -> Sequence[str]:
    """What is not as built, as far as this machine can tell; says what it cannot."""
    record: dict[str, Any] = json.loads(RECORD.read_text())
    if record["source"] != _digest(SOURCE):
        return [f"{SOURCE.relative_to(ROOT)} is not what the programs were built from: run ./dev native"]
    return [problem for target in TARGETS for problem in _compare(target, dict(record[target.machine]))]


def _compare(target: Target, recorded: dict[str, str]) -> Sequence[str]:
    name = target.program.relative_to(ROOT)
    if recorded.pop("program") != _digest(target.program):
        return [f"{name} is not what was built: run ./dev native"]
    lack = target.lacks()
    if lack is None and target.made_by() != recorded:
        lack = f"the same versions: {recorded['compiler']}, and its musl-dev"
    if lack is not None:
        say(f"native: not built again for {target.machine}, this machine lacks {lack}")
        return []
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, "again")
        target.build(again)
        return [] if again.read_bytes() == target.program.read_bytes() else [f"{name}: another build gives other bytes"]


def _build_all() -> None:
    record: dict[str, Any] = {"source": _digest(SOURCE)}
    PROGRAMS.mkdir(exist_ok=True)
    for target in TARGETS:
        _fetch(target)
        target.build(target.program)
        record[target.machine] = {**target.made_by(), "program": _digest(target.program)}
        say(f"Built {target.program.relative_to(ROOT)}, {target.program.stat().st_size:,} bytes.")
    RECORD.write_text(json.dumps(record, indent=2) + "\n")


def _fetch(target: Target) -> None:
    """Install the compiler where it is missing, and lay the C library of another kind of processor into .cache/."""
    if shutil.which(target.compiler, path=SYSTEM_PATH) is None:
        package = f"gcc-{target.machine.replace('_', '-')}-linux-gnu"
        install = ["apt-get", "-q", "install", "--yes", "--no-install-recommends", package]
        must_run(as_root(install, why=f"Installing {package}"), doing="apt-get install")
    if target.lacks() is None:
        return
    if target.musl == Path("/usr"):
        raise CannotContinueError("musl-dev is missing: run ./dev setup")
    folder = _FETCHED / target.machine
    state = folder / "apt"
    for part in ("lists/partial", "archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    here = {"Dir::State": state, "Dir::State::lists": state / "lists", "Dir::Cache": state}
    kind = {"APT::Architecture": target.debian, "APT::Architectures": target.debian}
    apt = ["apt-get", "-q", *(part for name, value in {**here, **kind}.items() for part in ("-o", f"{name}={value}"))]
    must_run([*apt, "update"], doing="apt-get update")
    must_run(["sh", "-c", 'cd "$0" && exec "$@"', state, *apt, "download", "musl-dev"], doing="apt-get download")
    (package_file,) = state.glob("musl-dev_*.deb")
    must_run(["dpkg-deb", "-x", package_file, folder], doing="Unpacking musl-dev")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main(arguments: Sequence[str]) -> int:
    """Build all, or compare; 0 when all is well."""
    parser = argparse.ArgumentParser(prog="./dev native", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="only compare")
    if not parser.parse_args(arguments).check:
        _build_all()
    found = problems()
    for problem in found:
        say(problem)
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except CannotContinueError as problem:
        say(f"dev: {problem}")
        sys.exit(1)
