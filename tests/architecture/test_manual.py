"""The comparison of the manual with the contract has been seen to fail."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import manual


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the contract and the manual, which agree."""
    for folder in ("docs", "openapi"):
        shutil.copytree(manual.ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    return tmp_path


def _new_field(root: Path) -> None:
    contract = root / "openapi" / "core-v1.json"
    data = json.loads(contract.read_text())
    data["components"]["schemas"]["PoolOut"]["properties"]["colour"] = {"type": "string", "description": "Its name."}
    contract.write_text(json.dumps(data))


def _new_sentence(root: Path) -> None:
    contract = root / "openapi" / "core-v1.json"
    contract.write_text(contract.read_text().replace("Show the current generation.", "Show what is current."))


def _edited(root: Path) -> None:
    page = root / "docs" / "zh" / "sandbox-deployment.md"
    page.write_text(page.read_text().replace("显示当前的代。", "显示。"))


def _heading(root: Path) -> None:
    page = root / "docs" / "en" / "sandbox-deployment.md"
    page.write_text(page.read_text().replace("\n## ", "\n### ", 1))


def test_they_agree(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert copy.exists()
    assert (manual.main(["--check"]), capsys.readouterr().out) == (0, "")


@pytest.mark.parametrize(
    "change, told",
    [
        (_new_field, "docs/zh/sandbox-deployment.md is not what the contract says"),
        (_new_sentence, "docs/zh/reference.json lacks"),
        (_edited, "docs/zh/sandbox-deployment.md is not what the contract says"),
        (_heading, "differ in their headings"),
    ],
)
def test_what_parts_them_is_told(
    copy: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], None], told: str
) -> None:
    change(copy)
    assert manual.main(["--check"]) == 1
    assert told in capsys.readouterr().out
