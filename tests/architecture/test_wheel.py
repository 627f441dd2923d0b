"""What `pip install` of the wheel gives in an empty environment: SDK and command line, and no server."""

import dataclasses
import pathlib
import subprocess
import sys

import pytest

from tools import native

pytestmark = pytest.mark.slow
ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = ["fastapi", "pydantic", "sqlalchemy", "alembic", "uvicorn", "structlog", "cryptography"]
NO_INDEX = ("No matching distribution found", "Could not find a version", "No module named 'ensurepip'")
"""What pip says where it has neither a package index nor a cache."""


@dataclasses.dataclass(frozen=True)
class Environment:
    """A virtual environment that holds the wheel and what it depends on."""

    folder: pathlib.Path

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """One of its programs, with an environment that knows no installation."""
        home = {"HOME": str(self.folder), "SANDBAY_HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        program = [str(self.folder / "bin" / command[0]), *command[1:]]
        return subprocess.run(program, capture_output=True, text=True, check=False, env={**home, **more}, cwd="/")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel in an environment of its own. Skips, saying why, where packages cannot be had."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, capture_output=True)
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode and any(sign in done.stderr for sign in NO_INDEX):
        pytest.skip(f"this machine lacks a package index that pip reaches: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return Environment(folder / "venv")


def test_the_command_line_is_there(installed: Environment) -> None:
    help_ = installed.run("sandbay", "--help")
    assert (help_.returncode, help_.stderr) == (0, "")
    assert "images" in help_.stdout
    lost = installed.run("sandbay", "images", "ls")
    assert (lost.returncode, lost.stdout) == (125, "")
    assert "(no_context)" in lost.stderr
    away = installed.run("sandbay", "images", "ls", SANDBAY_URL="http://127.0.0.1:9", SANDBAY_ADMIN_KEY="sba_1")
    assert (away.returncode, away.stdout) == (125, "")
    assert "no installation answers at http://127.0.0.1:9" in away.stderr


def test_the_sdk_is_there(installed: Environment) -> None:
    program = """
import asyncio, sandbay
from sandbay.sdk.errors import UnreachableError
for name in sandbay.__all__:
    getattr(sandbay, name)
try:
    sandbay.Sandbox.create("web", client=sandbay.Client("http://127.0.0.1:9", "sbp_1"))
except UnreachableError as error:
    print(error.code)
async def main():
    async with sandbay.AsyncClient("http://127.0.0.1:9", "sbp_1") as client:
        try:
            await sandbay.AsyncSandbox.create("web", client=client)
        except UnreachableError as error:
            print(error.code)
asyncio.run(main())
"""
    done = installed.run("python", "-W", "error::RuntimeWarning", "-c", program)
    assert (done.stdout, done.stderr) == ("unreachable\nunreachable\n", "")


@pytest.mark.parametrize("command", ["up", "core", "down", "doctor"])
def test_what_needs_the_server_says_what_to_install(installed: Environment, command: str) -> None:
    done = installed.run("sandbay", command)
    assert (done.returncode, done.stdout) == (125, "")
    assert "pip install 'sandbay[server]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_server_came_along(installed: Environment) -> None:
    look = f"import importlib.util as u; print([name for name in {SERVER!r} if u.find_spec(name)])"
    assert installed.run("python", "-c", look).stdout == "[]\n"
    assert installed.run("python", "-m", "pip", "check").returncode == 0


def test_the_spawner_came_along_for_every_processor(installed: Environment) -> None:
    (folder,) = installed.folder.glob("lib/python3*/site-packages/sandbay/adapters/providers/oci/native")
    assert {file.name for file in folder.iterdir()} == {target.program.name for target in native.TARGETS}
    for target in native.TARGETS:
        program = (folder / target.program.name).read_bytes()
        assert program == target.program.read_bytes()
        assert int.from_bytes(program[18:20], "little") == {"x86_64": 62, "aarch64": 183}[target.machine]


def test_types_come_along(installed: Environment) -> None:
    """For type checkers `sandbay.Sandbox` is the class, not an object that nobody knows."""
    (package,) = installed.folder.glob("lib/python3*/site-packages/sandbay")
    assert (package / "py.typed").exists()
    (installed.folder / "typed.py").write_text("import sandbay\nreveal_type(sandbay.AsyncSandbox.create)\n")
    check = [sys.executable, "-m", "mypy", "--python-executable", str(installed.folder / "bin" / "python")]
    done = subprocess.run(
        [*check, "--config-file=", "typed.py"], capture_output=True, text=True, check=False, cwd=installed.folder
    )
    assert "AsyncSandbox" in done.stdout, done.stdout
