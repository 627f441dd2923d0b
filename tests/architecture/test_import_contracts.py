"""Every import contract has been seen to fail, from a green baseline.

A breaking import is planted in a copy of the source tree. Its contract has to fall, and no unrelated one.
"""

import dataclasses
import itertools
import pathlib
import shutil
import sys
from collections.abc import Iterator

import pytest
from importlinter import api
from importlinter.application import use_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = str(ROOT / ".importlinter")
CONTRACTS = {options["id"]: options["name"] for options in api.read_configuration(CONFIG)["contracts_options"]}


@dataclasses.dataclass(frozen=True)
class Fault:
    """An import, planted at the end of `module`, and the contract that it breaks."""

    contract: str
    module: str
    line: str

    def __str__(self) -> str:
        return f"{self.contract}: {self.module} <- {self.line}"


def _all(contract: str, importers: list[str], imported: list[str]) -> list[Fault]:
    return [Fault(contract, who, f"import sandbay.{what}") for who, what in itertools.product(importers, imported)]


FAULTS = [
    # Upwards, sideways, and a package without a place.
    Fault("layers", "domain/planted.py", "import sandbay.flow.place"),
    Fault("layers", "flow/planted.py", "import sandbay.ports.clock"),
    Fault("layers", "ports/planted.py", "import sandbay.app"),
    Fault("layers", "app/planted.py", "import sandbay.adapters.clock"),
    Fault("layers", "app/planted.py", "import sandbay.api"),
    Fault("layers", "engine/planted.py", "import sandbay.app"),
    Fault("layers", "sdk/planted.py", "import sandbay.domain.reasons"),
    Fault("layers", "api/planted.py", "import sandbay.node"),
    Fault("layers", "api/planted.py", "import sandbay.entrypoints"),
    Fault("layers", "helpers/__init__.py", ""),
    *_all("app-users", ["node/planted.py", "adapters/clock/planted.py"], ["app"]),
    *_all("engine-users", ["api/planted.py"], ["engine"]),
    *_all("sdk-users", ["api/planted.py", "app/planted.py", "engine/planted.py", "node/planted.py"], ["sdk"]),
    Fault("root-is-for-users", "app/planted.py", "from sandbay import Client"),
    Fault("root-is-for-users", "node/planted.py", "import sandbay"),
    *_all("cli-through-sdk", ["cli/planted.py"], ["app", "ports", "flow", "domain.ids"]),
    *_all("absence-is-no-choice", ["flow/resolve/chain.py", "flow/freeze.py"], ["domain.node", "domain.readiness"]),
    *_all(
        "nothing-re-resolves",
        ["flow/place.py", "flow/prepare.py", "flow/run.py", "node/planted.py"],
        ["domain.catalog", "domain.binding"],
    ),
    *_all("nothing-re-resolves", ["node/planted.py"], ["flow.resolve"]),
    *_all(
        "frozen-stands-alone",
        ["domain/frozen.py", "domain/deployment.py", "domain/session.py"],
        ["domain.catalog", "domain.binding", "domain.node", "domain.readiness", "domain.allocation"],
    ),
    *_all("steps-are-independent", ["flow/check.py"], ["flow.collect", "flow.want"]),
    *_all("adapters-are-independent", ["adapters/store/planted.py"], ["adapters.blobs", "adapters.ids"]),
    *(
        Fault("pure", module, f"import {world}")
        for module in ("domain/ids.py", "flow/want.py")
        for world in ("os", "time", "random", "logging", "secrets", "structlog", "socket", "threading")
    ),
]
# A forbidden contract follows imports, so these may fall as well, once others import the broken module.
FOLLOWERS = {
    "app-users": {"nothing-re-resolves"},
    "frozen-stands-alone": {"absence-is-no-choice", "nothing-re-resolves"},
}
# Inside one port's folder there may be a single module so far: the fault brings its own two.
SIBLINGS = {
    "providers-are-independent": "providers",
    "image-sources-are-independent": "image_source",
    "node-links-are-independent": "node_link",
}
# These cannot break alone: what they import is somebody's only home.
COMPANY = [
    ("flow/place.py", "import sandbay.flow.resolve", {"nothing-re-resolves", "steps-are-independent"}),
]


class Tree:
    """A copy of the package that import-linter finds in place of ours, and its notes on the modules it has read."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.package, self.notes = folder / "sandbay", str(folder / "notes")
        shutil.copytree(ROOT / "src" / "sandbay", self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self._before: dict[pathlib.Path, bytes | None] = {}

    def plant(self, module: str, line: str) -> None:
        """Add a line to a module, which may be new."""
        path = self.package / module
        path.parent.mkdir(exist_ok=True)
        before = path.read_bytes() if path.exists() else None
        self._before.setdefault(path, before)
        path.write_bytes((before or b"") + f"\n{line}\n".encode())

    def weed(self) -> None:
        """Leave the copy as it was made."""
        for path, content in self._before.items():
            if content is not None:
                path.write_bytes(content)
                continue
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
        self._before.clear()

    def broken_contracts(self) -> set[str]:
        """Return the ids of the contracts that the copy breaks."""
        use_cases._register_built_in_contract_types()  # what its command line does first
        report = use_cases.create_report(use_cases.read_user_options(CONFIG), cache_dir=self.notes)
        assert not report.invalid_contract_options
        ids = {name: contract for contract, name in CONTRACTS.items()}
        return {ids[contract.name] for contract, check in report.get_contracts_and_checks() if not check.kept}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("copy"))


@pytest.fixture
def tree(copy: Tree, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    """The copy, on the import path."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "sandbay"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(copy.package.parent)
    yield copy
    copy.weed()


def test_the_tree_as_it_is_keeps_every_contract(tree: Tree) -> None:
    assert tree.broken_contracts() == set()


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_breaking_import_breaks_its_contract_and_no_unrelated_one(tree: Tree, fault: Fault) -> None:
    tree.plant(fault.module, fault.line)
    broken = tree.broken_contracts()
    assert fault.contract in broken
    assert broken - {fault.contract} <= FOLLOWERS.get(fault.contract, set())


@pytest.mark.parametrize("contract, folder", SIBLINGS.items())
def test_siblings_that_meet_break_exactly_their_contract(tree: Tree, contract: str, folder: str) -> None:
    tree.plant(f"adapters/{folder}/planted_one.py", "")
    tree.plant(f"adapters/{folder}/planted_two.py", f"import sandbay.adapters.{folder}.planted_one")
    assert tree.broken_contracts() == {contract}


@pytest.mark.parametrize("module, line, contracts", COMPANY)
def test_an_import_can_break_two_contracts(tree: Tree, module: str, line: str, contracts: set[str]) -> None:
    tree.plant(module, line)
    assert tree.broken_contracts() == contracts


def test_an_import_through_somebody_else_counts(tree: Tree) -> None:
    tree.plant("domain/planted.py", "import sandbay.domain.readiness")
    tree.plant("flow/resolve/levels.py", "import sandbay.domain.planted")
    assert tree.broken_contracts() == {"absence-is-no-choice"}


def test_every_contract_has_a_fault() -> None:
    assert {fault.contract for fault in FAULTS} | set(SIBLINGS) == set(CONTRACTS)
