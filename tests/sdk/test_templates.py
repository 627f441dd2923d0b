"""Templates through either client, and as they lie on a disk."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbay.sdk import Progress
from sandbay.sdk.errors import RequestError
from sandbay.sdk.templates import parse, read
from tests.support.scripted_http import Answer, page, scripted, session

Connect = Callable[[str], Any]
AT = "/v1/environments/templates"
SHOWN = {"id": "tmp_1", "name": "work", "revision": 2, "runtime_image_id": "web", "warnings": ["deprecated"]}


def test_every_verb(sdk: Any, connect: Connect) -> None:
    script = {
        f"GET {AT}": page(SHOWN),
        f"GET {AT}/work": Answer(body=SHOWN),
        f"POST {AT}": Answer(201, SHOWN),
        f"PATCH {AT}/work": Answer(body=SHOWN),
        f"DELETE {AT}/work": Answer(204),
    }
    with scripted(lambda asked: script[asked.what]) as server:
        templates = sdk.Client(transport=connect(server.url)).templates
        assert [it.name for it in templates.list()] == ["work"]
        assert (templates.get("work").revision, templates.get("work").warnings) == (2, ("deprecated",))
        templates.create("work", {"env": {"A": "1"}, "name": "other"})
        templates.update("work", {"env": None}, expected_revision=2)
        templates.delete("work")
        bodies = [asked.json for asked in server.asked if asked.what.startswith(("POST", "PATCH"))]
    assert bodies == [{"name": "work", "env": {"A": "1"}}, {"env": None, "expected_revision": 2}]


def test_a_session_with_files_of_a_template(sdk: Any, connect: Connect) -> None:
    with scripted(lambda asked: Answer(201, session())) as server:
        client = sdk.Client(transport=connect(server.url))
        with sdk.Sandbox.create(template="work", files={"a": "text", "b": b"\xff"}, client=client):
            pass
        body = server.asked[0].json
    assert body["template"] == "work"
    assert body["files"] == [{"path": "a", "content": "text"}, {"path": "b", "encoding": "base64", "content": "/w=="}]


def test_progress_of_a_setup_has_no_bytes() -> None:
    told = {
        "phase": "setup",
        "bytes_done": None,
        "bytes_total": None,
        "step": 1,
        "steps": 2,
        "doing": "x",
        "output": "y",
    }
    assert Progress.of(told) == Progress("setup", 0, None, 1, 2, "x", "y")


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    for path, data in {
        "template.toml": b'name = "work"\nnetwork = "disabled"\nfiles = [{ path = "own", content = "" }]\n',
        "files/a/b.txt": "ü".encode(),
        "files/run": b"\x00\xff",
        "skills/cook/SKILL.md": b"stir",
        "skills/cook/x/y": b"z",
        "plugins/plug/plugin.json": b"{}",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / "files" / "run").chmod(0o755)
    (tmp_path / "files" / "secret").symlink_to("/etc/shadow")
    binary = {
        "path": "run",
        "executable": True,
        "encoding": "base64",
        "content": base64.b64encode(b"\x00\xff").decode(),
    }
    assert read(tmp_path) == {
        "name": "work",
        "network": "disabled",
        "files": [{"path": "own", "content": ""}, {"path": "a/b.txt", "content": "ü"}, binary],
        "skills": [{"files": [{"path": "SKILL.md", "content": "stir"}, {"path": "x/y", "content": "z"}]}],
        "plugins": [{"files": [{"path": "plugin.json", "content": "{}"}]}],
    }
    assert read(tmp_path / "template.toml")["name"] == "work"


@pytest.mark.parametrize("data", [b"\xff", b"{", b"[1", b"a = "])
def test_what_is_neither_json_nor_toml(data: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        parse(data)
    assert caught.value.code == "invalid_body"


def test_json_and_toml_say_the_same() -> None:
    assert parse(b' {"env": {"A": "1"}}') == parse(b'env = { A = "1" }') == {"env": {"A": "1"}}
