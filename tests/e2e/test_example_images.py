"""The example images at work: in a real sandbox each can do what it exists for, as its unprivileged user."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.example_images import IMAGES, ON_BASE
from tests.e2e.installation import Done, Installation

pytestmark = [pytest.mark.real, pytest.mark.slow]

# Packages without dependencies that bring a command `hello`, which prints 42.
COMMAND = """echo '{"name": "p", "version": "1.0.0", "bin": {"hello": "it.js"}}'"""
PROGRAM = r"""printf '#!/usr/bin/env node\nconsole.log(6 * 7)\n'"""
PACKAGE = r"""printf 'from setuptools import setup\nsetup(name="p", scripts=["hello"])\n' >setup.py"""
PYTHON = r"""printf '#!/usr/bin/env python3\nprint(6 * 7)\n' >hello"""
PNG = b"\x89PNG\r\n\x1a\n"
# For each image: a command line, and the last line that it prints.
WORK = [
    ("review", "git init -q . && echo two >f && git add f && echo one >f && git diff | rg -c '^[-+](one|two)'", "2"),
    ("review", "jq -n '[1, 2] | add'", "3"),
    ("web", "node -p '[1, 2].map(it => it * 2).join()'", "2,4"),
    (
        "web",
        """mkdir a && cd a && echo '{"scripts": {"it": "node -p 6*7"}}' >package.json && pnpm install && pnpm run it""",
        "42",
    ),
    ("web", """mkdir b && cd b && echo '{"scripts": {"it": "node -p 6*7"}}' >package.json && npm run it""", "42"),
    ("web", f"mkdir c && cd c && {COMMAND} >package.json && {PROGRAM} >it.js && npm install -g . && hello", "42"),
    ("web", f"mkdir d && cd d && {COMMAND} >package.json && {PROGRAM} >it.js && pnpm link -g && hello", "42"),
    (
        "design",
        "echo 'digraph { a -> b [label=\"größer 大\"] }' | dot -Tpng -o g.png && identify -format %m g.png",
        "PNG",
    ),
    ("design", "convert -size 200x40 label:Sandbay png:- | identify -format '%w %m' -", "200 PNG"),
    ("design", "fc-match -f %{family} 'DejaVu Sans'", "DejaVu Sans"),
    ("design", "fc-match -f %{family} 'Liberation Serif'", "Liberation Serif"),
    ("design", "fc-list -f %{family} :charset=5927", "Droid Sans Fallback"),
    (
        "commercial",
        "printf 'a,b\\n1,2\\n' >t.csv && sqlite3 d -csv '.import t.csv t' && sqlite3 d 'select b from t'",
        "2",
    ),
    ("commercial", "python3 -m venv v && v/bin/python -c 'import sqlite3, ssl, csv; print(6 * 7)'", "42"),
    ("commercial", f"mkdir e && cd e && {PACKAGE} && {PYTHON} && pip install --no-build-isolation . && hello", "42"),
    ("commercial", "echo '<h1>Hello</h1>' | w3m -T text/html -dump | head -1", "Hello"),
    ("commercial", """echo '{"a": 42}' >x.json && curl -s file://$PWD/x.json | jq .a""", "42"),
]


@pytest.fixture(scope="module")
def shelf(layouts: Path) -> Iterator[Installation]:
    """An installation that has them all."""
    house = Installation()
    try:
        house.up()
        for name in ("base", *ON_BASE):
            done = house.register(name, layouts / name)
            assert done.code == 0, done
        yield house
    finally:
        house.close()


@pytest.fixture(scope="module")
def sessions(shelf: Installation) -> dict[str, str]:
    """A Session on each; they end with the installation."""
    return {name: shelf.ok("sessions", "create", "--image", name, "-q").out.strip() for name in ("base", *ON_BASE)}


def tools() -> list[tuple[str, str, str]]:
    """Every image's promise: tool, and command that prints its version."""
    files = {name: tomllib.loads((IMAGES / name / "image.toml").read_text()) for name in ("base", *ON_BASE)}
    return [(name, tool, command) for name, file in files.items() for tool, command in file["tools"].items()]


def _line(shelf: Installation, session: str, line: str) -> Done:
    return shelf.cli("sessions", "exec", session, "--shell", line, timeout=120)


@pytest.mark.parametrize("name, tool, command", tools())
def test_every_tool_prints_its_version(
    shelf: Installation, sessions: dict[str, str], name: str, tool: str, command: str
) -> None:
    done = _line(shelf, sessions[name], f"command -v {tool} && {command} 2>&1")
    assert done.code == 0, done
    assert any(character.isdigit() for character in done.out.split("\n", 1)[1]), done


@pytest.mark.parametrize("name, line, output", WORK)
def test_it_does_what_it_exists_for(
    shelf: Installation, sessions: dict[str, str], name: str, line: str, output: str
) -> None:
    done = _line(shelf, sessions[name], line)
    assert done.code == 0, done
    assert done.out.splitlines()[-1] == output, done


@pytest.mark.parametrize("name", ["base", *ON_BASE])
def test_the_user_is_nobody_in_particular_and_home_is_theirs(
    shelf: Installation, sessions: dict[str, str], name: str
) -> None:
    done = _line(shelf, sessions[name], 'touch "$HOME/mine" && stat -c "%U %a" "$HOME/mine" && echo "$HOME"; id -u')
    assert done.out.splitlines() == ["agent 644", "/home/agent", "1000"], done
    refused = _line(shelf, sessions[name], "touch /usr/bin/mine")
    assert refused.code != 0, refused


def test_a_picture_reaches_the_host(shelf: Installation, sessions: dict[str, str], tmp_path: Path) -> None:
    done = _line(shelf, sessions["design"], "echo 'graph { a -- b }' | dot -Tpng -o picture.png")
    assert done.code == 0, done
    shelf.ok("sessions", "cp", f"{sessions['design']}:picture.png", str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)


def test_they_share_the_layers_of_base(layouts: Path) -> None:
    def layers(name: str) -> list[str]:
        blobs = layouts / name / "blobs" / "sha256"
        (entry,) = json.loads((layouts / name / "index.json").read_bytes())["manifests"]
        manifest = json.loads((blobs / entry["digest"].removeprefix("sha256:")).read_bytes())
        return [layer["digest"] for layer in manifest["layers"]]

    base = layers("base")
    assert [(name, layers(name)[: len(base)]) for name in ON_BASE] == [(name, base) for name in ON_BASE]
