"""The checks of ./dev that are ours have been seen to fail."""

import contextlib
import json
import pathlib
import shutil
import subprocess

import pytest

from tools import hosts, mutants, native, setup, sizes
from tools.machine import PYTHON, ROOT

REGISTRY = hosts.NAMES[0]  # never in full here: this file is checked, too


@pytest.fixture
def repository(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """An empty repository that the checks take for ours."""
    for folder in ("src", "tools", "images", "requirements", "rules"):
        (tmp_path / folder).mkdir()
    (tmp_path / "rules" / "size-exceptions.txt").write_text("# none\n")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for module in (hosts, sizes):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(sizes, "_EXCEPTIONS", tmp_path / "rules" / "size-exceptions.txt")
    return tmp_path


def _function(lines: int) -> str:
    return "def work():\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize(
    "text, named",
    [
        (_function(40), []),
        (_function(41), ["src/a.py::work"]),
        ("class A:\n    async " + _function(41).replace("    ", "        "), ["src/a.py::A.work"]),
        ("if True:\n    " + _function(41).replace("    ", "        "), ["src/a.py::work"]),
        ("x = 1\n" * 400, []),
        ("x = 1\n" * 401, ["src/a.py"]),
    ],
)
def test_what_is_too_long_is_named(repository: pathlib.Path, text: str, named: list[str]) -> None:
    (repository / "src" / "a.py").write_text(text)
    assert [problem.partition(": ")[0] for problem in sizes.problems()] == named


def test_an_exception_excuses_one_thing_and_may_not_outlive_it(repository: pathlib.Path) -> None:
    exceptions = repository / "rules" / "size-exceptions.txt"
    exceptions.write_text("src/a.py::work  # a table\n")
    (repository / "src" / "a.py").write_text(_function(41))
    assert sizes.problems() == []
    (repository / "src" / "a.py").write_text(_function(40))
    assert len(sizes.problems()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.test/simple",
        "--extra-index-url file:///opt/wheels",
        "--find-links /opt/wheels",
        "-f /opt/wheels",
        "thing @ file:/opt/thing.whl",
        "thing @ git+ssh://example.test/thing",
    ],
)
def test_a_lock_that_names_a_host_is_refused(repository: pathlib.Path, line: str) -> None:
    lock = repository / "requirements" / "dev.txt"
    lock.write_text("thing==1 \\\n    --hash=sha256:00\n    # via other\n")
    assert hosts.problems() == []
    lock.write_text(f"{line}\nthing==1\n")
    assert len(hosts.problems()) == 1


def test_a_file_that_names_a_registry_is_refused_unless_ignored(repository: pathlib.Path) -> None:
    (repository / ".gitignore").write_text("build/\n")
    (repository / "build").mkdir()
    (repository / "build" / "log").write_text(REGISTRY)
    assert hosts.problems() == []
    (repository / "README.md").write_text(f"one\nfrom {REGISTRY} two\n")
    assert hosts.problems() == [f"README.md:2: names the host of a package registry, {REGISTRY}"]


@pytest.fixture
def built(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A copy of the spawner's source, record and programs that the check takes for ours."""
    for name in ("SOURCE", "RECORD", "PROGRAMS"):
        original: pathlib.Path = getattr(native, name)
        copy = tmp_path / original.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if original.is_dir() else shutil.copy)(original, copy)
        monkeypatch.setattr(native, name, copy)
    monkeypatch.setattr(native, "ROOT", tmp_path)
    return tmp_path


def test_what_is_built_is_as_it_was_built_wherever_it_is_built(built: pathlib.Path) -> None:
    assert native.problems() == []


def test_a_source_that_was_changed_since_is_named(built: pathlib.Path) -> None:
    native.SOURCE.write_text(native.SOURCE.read_text() + "\n")
    assert [problem.partition(" ")[0] for problem in native.problems()] == ["native/spawner.c"]


@pytest.mark.parametrize("target", native.TARGETS, ids=lambda target: target.machine)
def test_a_program_that_was_changed_since_is_named(built: pathlib.Path, target: native.Target) -> None:
    content = bytearray(target.program.read_bytes())
    content[-1] ^= 1
    target.program.write_bytes(content)
    assert len(native.problems()) == 1
    record = json.loads(native.RECORD.read_text())
    record[target.machine]["program"] = native._digest(target.program)
    native.RECORD.write_text(json.dumps(record))
    lack = target.lacks()
    if lack is not None or target.made_by().items() - record[target.machine].items():
        pytest.skip(f"this machine lacks {lack or 'the compiler that built it'}")
    (problem,) = native.problems()
    assert "other bytes" in problem


def test_every_system_package_says_how_it_shows_and_why() -> None:
    packages = setup.system_packages()
    assert len({package.name for package in packages}) == len(packages)
    assert all(package.name and package.sign and package.why for package in packages)


def test_a_missing_program_or_path_is_missing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "lib9").mkdir()
    assert setup.SystemPackage("a", "sh", "a shell").is_installed()
    assert setup.SystemPackage("b", f"{tmp_path}/lib*", "a path").is_installed()
    assert not setup.SystemPackage("c", "sandbay-no-such-program", "nothing").is_installed()
    assert not setup.SystemPackage("d", f"{tmp_path}/no*", "nothing").is_installed()


@pytest.mark.parametrize("fails", [False, True])
def test_postgresql_is_installed_without_a_cluster(monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> None:
    """Its package makes one, and the host would serve it from then on; whatever happens, the setting does not stay."""
    ran: list[str] = []

    def run(command: list[str], *, doing: str) -> None:
        ran.append(" ".join(command))
        if fails and command[-1] == "postgresql":
            raise OSError(doing)

    monkeypatch.setattr(setup, "must_run", run)
    monkeypatch.setattr(setup, "as_root", lambda command, why: list(command))
    monkeypatch.setattr(setup.SystemPackage, "is_installed", lambda _: True)
    with pytest.raises(OSError, match="apt-get") if fails else contextlib.nullcontext():
        setup._install_system([setup.SystemPackage("postgresql", "/x", "tests")])
    settings = "pg_conftool /etc/postgresql-common/createcluster.conf"
    assert [line for line in ran[1:] if "postgresql" in line][1:] == [
        f"{settings} set create_main_cluster false",
        next(line for line in ran if line.endswith(" postgresql")),
        f"{settings} remove create_main_cluster",
    ]


def test_faults_are_planted_where_the_tests_can_be_run(tmp_path: pathlib.Path) -> None:
    """Else they fail before anything is planted, and nobody learns what they would have caught."""
    mutants.copy(ROOT, tmp_path)
    command = [str(PYTHON), "-B", "-m", "pytest", "--collect-only", "--quiet", *mutants.TESTS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
