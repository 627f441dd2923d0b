"""Every row of `references.json`, given to the interface and to the command line: both mean what the table says."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.image_source.registry import RegistrySources
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference
from sandbay.ports.image_source import ImageSource
from tests.api import conftest
from tests.api.served import IMAGES, Served, answered, refused
from tests.cli import test_cli
from tests.cli.test_cli import Point, Sandbay

environ, sandbay, shared = test_cli.environ, test_cli.sandbay, conftest.shared

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "references.json").read_text(encoding="utf-8")
)


@pytest.fixture
def asked_of(monkeypatch: pytest.MonkeyPatch) -> list[OciReference]:
    """Which references became sources; nothing listens behind any of them."""
    seen: list[OciReference] = []

    def source(_: RegistrySources, reference: OciReference, __: object) -> ImageSource:
        seen.append(reference)
        raise RefusedError(Reason.REGISTRY_UNREACHABLE, "nothing listens there")

    monkeypatch.setattr(RegistrySources, "source", source)
    return seen


@pytest.mark.parametrize("row", ROWS, ids=lambda row: repr(row["input"])[:60])
def test_interface_and_command_line_agree(
    shared: Served,
    environ: Point,
    sandbay: Sandbay,
    asked_of: list[OciReference],
    monkeypatch: pytest.MonkeyPatch,
    row: dict[str, Any],
) -> None:
    environ(shared.address)
    monkeypatch.setenv("SANDBAY_ADMIN_KEY", shared.admin_key)
    answer = shared.admin.post(f"{IMAGES}/web/releases", json={"source": {"registry": row["input"]}})
    said = sandbay("images", "register", "web", "--from-registry", row["input"], "--json")
    assert said.code == 125
    if row["ok"]:
        refused(answer, 502, "registry_unreachable")
        assert json.loads(said.err)["error"]["code"] == "registry_unreachable"
        assert asked_of == [OciReference(row["domain"], row["path"], row["tag"], row["digest"])] * 2
    else:
        # NUL is in no text of the interface, whatever it stands for.
        code = "invalid_body" if "\0" in row["input"] else "invalid_reference"
        refused(answer, 400, code, "source.registry")
        told = json.loads(said.err)["error"]
        assert (told["code"], told["param"]) == (code, "source.registry")
        assert asked_of == []
    assert len(answered(shared.admin.get(f"{IMAGES}/web/releases"))["items"]) == 1
