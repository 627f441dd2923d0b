"""`sandbay doctor` on a host that lacks things: what is missing, whether it matters, and what to install."""

import json
import os
import pathlib
import shutil
from collections.abc import Iterator

import pytest

from sandbay.domain.disk import DiskBudget
from sandbay.entrypoints import examine
from sandbay.entrypoints.settings import Settings
from tests.e2e.installation import Installation

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("real_sandboxes")]


@pytest.fixture
def nothing() -> Iterator[Installation]:
    """No installation, only a place for one."""
    place = Installation()
    yield place
    shutil.rmtree(place.root)


def path_without(folder: pathlib.Path, *programs: str) -> str:
    """A PATH with everything that is there, but for these."""
    folder.mkdir()
    for place in os.environ["PATH"].split(":"):
        for program in pathlib.Path(place).glob("*"):
            if program.name not in programs and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return str(folder)


@pytest.mark.parametrize(
    "lacks, package, code, bad",
    [
        ("crun runc", "runc", 125, {"runtime", "seccomp"}),
        ("unshare", "util-linux", 125, {"user_namespaces", "idmapped_mounts", "network"}),
        ("nft", "nftables", 0, {"network"}),
        ("buildah", "buildah", 0, {"builder"}),
    ],
)
def test_what_is_missing_is_told_with_its_package(
    nothing: Installation, tmp_path: pathlib.Path, lacks: str, package: str, code: int, bad: set[str]
) -> None:
    path = path_without(tmp_path / "bin", *lacks.split())
    program = nothing.cli("doctor", "--json", env={"PATH": path})
    found = {finding["name"]: finding for finding in program.data}
    assert program.code == code
    assert {name for name, finding in found.items() if not finding["ok"]} == bad
    assert all(package in found[name]["do"] for name in bad)
    assert all(finding["do"] == "" for finding in found.values() if finding["ok"])
    people = nothing.cli("doctor", "-q", env={"PATH": path})
    assert [line.split()[:2] for line in people.out.splitlines() if "→" not in line] == [
        ["FAIL" if found[name]["fatal"] else "note", name] for name in found if name in bad
    ]
    assert package in people.out


def test_a_home_that_sandboxes_cannot_pass_is_told(nothing: Installation) -> None:
    nothing.root.chmod(0o700)
    done = nothing.cli("doctor", "--json")
    (home,) = [finding for finding in done.data if finding["name"] == "home"]
    assert done.code == 125
    assert str(nothing.root) in home["says"]
    assert "SANDBAY_HOME" in home["do"]
    nothing.root.chmod(0o711)
    assert nothing.ok("doctor", "-q").out == ""


def test_who_is_not_root_is_told_what_to_do(nothing: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    first, *others = examine.examine(Settings(nothing.home, nothing.run))
    assert (first.name, first.ok, first.fatal) == ("root", False, True)
    assert "sudo" in first.do
    assert {finding.name for finding in others} == {"home", "room", "builder"}


def test_the_store_is_told_as_it_lies_there(nothing: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    store = nothing.node_home / "store"
    here = Settings(nothing.home, nothing.run, store_budget=DiskBudget(bytes=1024**3))
    assert list(examine._store(here, "oci")) == [], "no store, nothing to say"
    for name in ("records", "layers", "l/aaaaaaaa", "staging/cut"):
        (store / name).mkdir(parents=True)
    layer = {"short": "aaaaaaaa", "bytes": 5 * 1024**3, "entries": 1}
    (store / "layers" / f"{'a' * 64}.json").write_text(json.dumps(layer))
    (store / "records" / f"{'b' * 64}.json").write_text(json.dumps({"layers": [{"key": f"sha256:{'a' * 64}"}]}))
    whole, budget = examine._store(here, "oci")
    assert (whole.name, whole.ok, whole.fatal) == ("store", True, False)
    assert "1 releases in 1 layers; 1 leftovers" in whole.says
    assert (budget.name, budget.ok, budget.fatal) == ("budget", False, False)
    assert "5.0 GiB of 1.0 GiB" in budget.says
    assert "images df" in budget.do
    (store / "l" / "aaaaaaaa").rmdir()
    torn, budget = examine._store(here, "oci")
    assert (torn.ok, budget.ok) == (False, True)
    assert "1 releases and 1 layers are not whole" in torn.says
    assert "images verify" in torn.do
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert list(examine._store(here, "oci")) == [], "who may not look says nothing"


def test_a_runtime_that_was_named_and_cannot_run_is_a_finding(nothing: Installation) -> None:
    done = nothing.cli("doctor", "--json", env={"SANDBAY_RUNTIME": "no-such-runtime"})
    (found,) = [finding for finding in done.data if finding["name"] == "runtimes"]
    assert (done.code, found["ok"], found["fatal"]) == (125, False, True)
    assert "no-such-runtime" in found["says"]
    assert "SANDBAY_RUNTIME" in found["do"]
