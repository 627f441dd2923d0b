"""./dev setup: what is missing is installed, what is there is left alone."""

import contextlib
import dataclasses
import hashlib
import pathlib
import shutil
import sys
from collections.abc import Iterator

from tools.machine import (
    PYTHON,
    ROOT,
    SYSTEM_PATH,
    UV,
    VENV,
    CannotContinueError,
    Part,
    as_root,
    must_run,
    say,
    suitable_python,
)

LOCK = ROOT / "requirements" / "dev.txt"
UV_LOCK = ROOT / "requirements" / "uv.txt"
SYSTEM_LIST = ROOT / "requirements" / "system.txt"
BENCH_LIST = ROOT / "requirements" / "bench.txt"
# Packages whose services would start, and serve this machine or its network, when they are installed.
_SERVICES = {
    "docker-registry": ("docker-registry.service",),
    "docker.io": ("docker.service", "docker.socket", "containerd.service"),
    "podman": ("podman.service", "podman.socket", "podman-auto-update.timer", "podman-restart.service"),
}
_STAMP = VENV / "sandbay-setup"
_POSTGRESQL = "postgresql"
_CLUSTER = ("pg_conftool", "/etc/postgresql-common/createcluster.conf")


@dataclasses.dataclass(frozen=True, slots=True)
class SystemPackage:
    """One line of a list of system programs."""

    name: str
    sign: str
    why: str

    def is_installed(self) -> bool:
        """Look for the program, or for a path that matches when the sign starts with a slash."""
        if self.sign.startswith("/"):
            return any(pathlib.Path("/").glob(self.sign.lstrip("/")))
        return shutil.which(self.sign, path=SYSTEM_PATH) is not None


def system_packages(listed: pathlib.Path = SYSTEM_LIST) -> list[SystemPackage]:
    """Read a list of system programs."""
    lines = (line.strip() for line in listed.read_text().splitlines())
    rows = (line.split("|") for line in lines if line and not line.startswith("#"))
    return [SystemPackage(*(cell.strip() for cell in row)) for row in rows]


def setup(*, quiet: bool) -> None:
    """Make this checkout usable. Quick, and silent with `quiet`, when everything is there."""
    install_missing(SYSTEM_LIST)
    wanted = _fingerprint()
    if _STAMP.exists() and _STAMP.read_text() == wanted and PYTHON.exists():
        _compile_sandbay()
        if not quiet:
            say("Everything is in place. The command line is .venv/bin/sandbay.")
        return
    _make_environment()
    _compile_sandbay()
    _STAMP.write_text(wanted)
    say("Ready. The command line is .venv/bin/sandbay.")


def install_missing(listed: pathlib.Path) -> None:
    """Install what is missing of a list of system programs."""
    missing = [package for package in system_packages(listed) if not package.is_installed()]
    if missing:
        _install_system(missing)


def _install_system(missing: list[SystemPackage]) -> None:
    if shutil.which("apt-get") is None:
        listed = ", ".join(package.name for package in missing)
        raise CannotContinueError(f"There is no apt-get here; please install by hand: {listed}.")
    say("Installing system programs with apt:")
    for package in missing:
        say(f"  {package.name}: {package.why}")
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
    must_run(as_root([*apt, "update"], why="Installing them"), doing="apt-get update")
    names = [package.name for package in missing]
    _keep_from_starting(names)
    install = [*apt, "install", "--yes", "--no-install-recommends"]
    with _no_cluster(install) if _POSTGRESQL in names else contextlib.nullcontext():
        must_run(as_root([*install, *names], why="Installing them"), doing="apt-get install")
    still = [package.name for package in missing if not package.is_installed()]
    if still:
        raise CannotContinueError(f"Installed, but not found afterwards: {', '.join(still)}.")


@contextlib.contextmanager
def _no_cluster(install: list[str]) -> Iterator[None]:
    """Debian's PostgreSQL makes a cluster and serves it from then on, unless its settings say not to."""
    must_run(as_root([*install, "postgresql-common"], why="Installing them"), doing="apt-get install")
    say("  (without a cluster of its own: the tests start a server and end it)")
    must_run(as_root([*_CLUSTER, "set", "create_main_cluster", "false"], why="Installing them"), doing="pg_conftool")
    try:
        yield
    finally:
        must_run(as_root([*_CLUSTER, "remove", "create_main_cluster"], why="Installing them"), doing="pg_conftool")


def _keep_from_starting(names: list[str]) -> None:
    """A program that only the tests start must not begin to serve this machine's network by being installed."""
    units = [unit for name in names for unit in _SERVICES.get(name, ())]
    if units and pathlib.Path("/run/systemd/system").exists():
        must_run(as_root(["systemctl", "mask", *units], why="Keeping them from starting"), doing="systemctl mask")


def _compile_sandbay() -> None:
    """Once here instead of at every start, for those whose Python may not write bytecode by itself."""
    must_run([PYTHON, "-m", "compileall", "-q", ROOT / "src"], doing="Compiling sandbay")


def _make_environment() -> None:
    if not (PYTHON.exists() and UV.exists()):
        say("Making .venv and putting uv into it.")
        must_run([suitable_python(), "-m", "venv", "--clear", VENV], doing="Making .venv")
        pip: list[Part] = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        must_run([*pip, "--no-deps", "--require-hashes", "-r", UV_LOCK], doing="Installing uv")
    say("Installing the locked Python packages.")
    uv: list[Part] = [UV, "--quiet", "pip"]
    sync: list[Part] = [*uv, "sync", "--compile-bytecode", "--require-hashes", LOCK, "--python", PYTHON]
    must_run(sync, doing="Installing packages")
    editable: list[Part] = [*uv, "install", "--no-deps", "--no-build-isolation", "--python", PYTHON, "--editable", "."]
    must_run(editable, doing="Installing sandbay itself")


def _fingerprint() -> str:
    digest = hashlib.sha256(f"{sys.platform} {ROOT}".encode())
    for path in (LOCK, UV_LOCK, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()
