"""The guide's commands, in its order, against an installation as it describes one."""

import pathlib
import re
import shlex

import pytest

from tests.api.served import SESSIONS, Served, answered
from tests.cli import test_cli
from tests.cli.test_cli import Point, Sandbay

environ, sandbay = test_cli.environ, test_cli.sandbay
GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "en" / "selection.md"


def test_the_commands_of_the_guide_do_what_it_says(
    served: Served, environ: Point, sandbay: Sandbay, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ(served.address)
    monkeypatch.setenv("SANDBAY_ADMIN_KEY", served.admin_key)
    for name in ("web", "design"):
        served.image(name, promote="stable")
    answered(served.deploy(default_image="web"))
    said = {}
    blocks = re.findall(r"^```console\n(.*?)^```$", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        command = shlex.split(line.removeprefix("$ sandbay "))
        said[" ".join(command[:3])] = done = sandbay(*command)
        assert done.code == 0, (line, done.err)
    assert len(said) > 15
    held = served.client(said["keys create desk"].out.strip())
    made = answered(held.post(SESSIONS, json={"wait_seconds": 60}), 201)
    assert (made["scope"], made["agent"]) == ("team:growth", "coder")
    assert made["image"]["decided_by"] == {"level": "agent", "subject": "coder"}
    assert "decks and diagrams" in said["bindings ls"].out
    assert "room:deal-desk" in said["scopes ls"].out
