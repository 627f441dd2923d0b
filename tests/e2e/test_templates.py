"""Templates in real sandboxes, from the command line: laid out, set up once, started over after kill -9."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbay.domain.reasons import Reason
from tests.e2e.installation import Installation
from tests.support import reasons
from tests.support.oci_layout import BUSYBOX_CONFIG
from tests.support.tar_entries import file

pytestmark = pytest.mark.real

PIP = b'#!/bin/sh\n[ "$1" = --version ] && exit 0\nid -u > /pip\nfor word in "$@"; do echo "$word" >> /pip; done\n'
SKILL = "---\nname: cook\ndescription: Cooks.\n---\nStir.\n"


@pytest.fixture(scope="module")
def own() -> Iterator[Installation]:
    """With a healthy default image `plain`, and `tool`, whose user is no root and which has a `pip`."""
    it = Installation()
    try:
        it.up()
        assert it.register("plain", it.image("plain")).code == 0
        config = {**BUSYBOX_CONFIG, "User": "agent"}
        tool = it.image("tool", file("bin/pip", PIP, mode=0o755), config=config)
        assert it.register("tool", tool).code == 0
        yield it
    finally:
        it.close()


def template(house: Installation, name: str, **said: Any) -> None:
    house.ok("templates", "create", "-", "--name", name, stdin=json.dumps(said).encode())


def run(house: Installation, name: str, line: str) -> str:
    session = house.ok("sessions", "create", "--template", name, "--json").data
    try:
        return house.ok("sessions", "exec", session["id"], "--shell", line).out
    finally:
        house.ok("sessions", "rm", session["id"])


def test_a_folder_becomes_a_session(own: Installation, tmp_path: Path) -> None:
    (tmp_path / "files" / "src").mkdir(parents=True)
    (tmp_path / "files" / "src" / "a.txt").write_text("one\n")
    (tmp_path / "files" / "run").write_bytes(b"#!/bin/sh\necho ran \xff\n")
    (tmp_path / "files" / "run").chmod(0o755)
    (tmp_path / "skills" / "cook").mkdir(parents=True)
    (tmp_path / "skills" / "cook" / "SKILL.md").write_text(SKILL)
    lines = ['name = "folder"', 'runtime_image_id = "tool"', 'env = { A = "1" }']
    lines.append('setup_commands = ["echo $A $(id -u) $PWD >> log", ["sh", "-c", "./run >> log"]]')
    (tmp_path / "template.toml").write_text("\n".join(lines))
    own.ok("templates", "create", str(tmp_path))
    said = run(own, "folder", "cat src/a.txt log .sandbay/skills/cook/SKILL.md; stat -c '%U %a' src/a.txt run .sandbay")
    assert said.startswith("one\n1 1000 /workspace\nran ")
    assert said.endswith(f"{SKILL}agent 644\nagent 755\nagent 755\n")


def test_packages_are_installed_by_the_images_own_tool_for_everybody(own: Installation) -> None:
    template(own, "packed", runtime_image_id="tool", packages={"python": ["x>=1"]}, setup_network="disabled")
    assert run(own, "packed", "cat /pip") == "0\ninstall\n--no-input\n--\nx>=1\n"


@pytest.mark.produces(Reason.SETUP_FAILED)
def test_a_failed_setup_is_told_with_its_output_and_nothing_is_left(own: Installation) -> None:
    template(own, "bad", setup_commands=["true", "echo why >&2; exit 9"])
    done = own.cli("sessions", "create", "--template", "bad", "--json")
    reasons.note(done.err)
    assert (done.code, done.refusal["code"]) == (125, "setup_failed")
    assert {"step": 2, "exit_code": 9, "output": "why\n"}.items() <= done.refusal["details"].items()
    template(own, "no-npm", packages={"npm": ["x"]}, setup_network="disabled")
    done = own.cli("sessions", "create", "--template", "no-npm", "--json")
    assert (done.refusal["code"], done.refusal["details"]["missing"]) == ("setup_failed", "npm")
    assert own.ok("run", "plain", "--", "cat", "/which").out == "plain\n"


def test_the_template_goes_and_the_session_stays_what_it_was(own: Installation) -> None:
    template(own, "gone", runtime_image_id="tool", files=[{"path": "a", "content": "old"}])
    session = own.ok("sessions", "create", "--template", "gone", "--json").data["id"]
    own.ok("templates", "update", "gone", "-", stdin=b'{"files": [{"path": "a", "content": "new"}]}')
    assert run(own, "gone", "cat a") == "new"
    own.ok("templates", "rm", "gone")
    assert own.ok("sessions", "exec", session, "--", "cat", "a").out == "old"
    refused = own.cli("sessions", "create", "--template", "gone", "--json").refusal
    assert (refused["code"], refused["param"]) == ("template_unknown", "template")
    own.ok("sessions", "rm", session)


@pytest.mark.slow
def test_kill_9_in_the_middle_of_a_setup_starts_it_over_in_a_fresh_sandbox(own: Installation) -> None:
    template(own, "slow", setup_commands=["echo once >> log", "sleep 5", "echo twice >> log"])
    session = own.post("/v1/sessions", {"template": "slow", "wait_seconds": 60})["id"]
    own.eventually(lambda: (own.ok("sessions", "get", session, "--json").data["progress"] or {}).get("step") == 2)
    own.kill()
    own.up()
    own.eventually(lambda: own.ok("sessions", "get", session, "--json").data["status"] == "running")
    assert own.ok("sessions", "exec", session, "--", "cat", "log").out == "once\ntwice\n"
    own.kill()
    own.up()
    assert own.ok("sessions", "exec", session, "--", "cat", "log").out == "once\ntwice\n"
    own.ok("sessions", "rm", session)
