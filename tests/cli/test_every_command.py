"""What every command has, whichever it is: help, `--json`, `-q`, a line in the manual, and no traceback."""

import importlib
import io
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from sandbay.cli.main import app
from tests.cli import test_cli
from tests.cli.test_cli import Sandbay

environ, nowhere, sandbay = test_cli.environ, test_cli.nowhere, test_cli.sandbay

MANUAL = pathlib.Path(__file__).parents[2] / "docs" / "en" / "cli.md"


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            if command.invoke_without_command:
                yield (*path, name), command
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


importlib.import_module("sandbay.entrypoints.main")  # adds its commands to the app
ALL = dict(commands(get_command(app)))
NAMES = [" ".join(path) for path in ALL]


def test_there_are_commands() -> None:
    assert {"run", "up", "images ls", "sessions exec"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_command_says_what_it_does_and_speaks_json(name: str) -> None:
    command = ALL[tuple(name.split())]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"--json", "--quiet", "-q"} <= options
    assert command.help
    silent = [parameter.name for parameter in command.params if "--" in parameter.opts[0] and not parameter.help]
    assert silent == []


def test_the_manual_has_each_command_and_no_other() -> None:
    told = re.findall(r"^\| `sandbay ([a-z -]+)`", MANUAL.read_text(), flags=re.MULTILINE)
    assert sorted(told) == sorted(NAMES), f"{MANUAL} lists the commands"


def test_help_is_plain_and_loads_neither_sdk_nor_server() -> None:
    program = (
        "import sys; from sandbay.entrypoints.main import run, app\n"
        f"for name in {NAMES!r}: print(run(app, [*name.split(), '--help']))\n"
        "print([n for n in ('httpx', 'rich', 'pydantic', 'fastapi', 'sqlalchemy', 'sandbay.sdk') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    *helps, loaded = done.stdout.splitlines()
    assert [line.removeprefix("Usage: sandbay ").partition(" [")[0] for line in helps if "Usage" in line] == NAMES
    assert helps.count("0") == len(NAMES)
    assert loaded == "[]"


NEEDS = {
    "audit verify": "file",
    "run": "web",
    "deployment set": "--default-platform linux/amd64",
    "images register": "web --from-registry r.example/web:1",
    "keys create": "ci",
    "projects scope-required": "growth",
    "scopes set": "team:growth",
    "scopes rm": "team:growth",
    "bindings get": "agent:coder",
    "bindings set": "scope:team:growth web",
    "bindings rm": "scope:team:growth",
    "allow-lists set": "deployment --all",
    "allow-lists rm": "deployment",
    "overrides set": "deployment deny",
    "overrides rm": "deployment",
    "grants add": "scope:team:growth web",
    "grants rm": "scope:team:growth web",
    "images tier": "web restricted",
    "keys rm": "key_1",
    "projects create": "growth",
    "projects set": "--no-image",
    "registries login": "r.example -u me --password-stdin",
    "registries logout": "r.example",
    "secrets set": "gh",
    "secrets rm": "gh",
    "sessions cp": "ses_1:a b",
    "sessions exec": "ses_1 -- true",
    "sessions get": "ses_1",
    "sessions resume": "ses_1",
    "sessions rm": "ses_1",
    "sessions shell": "ses_1",
    "sessions suspend": "ses_1",
    **{
        f"images {verb}": "web"
        for verb in ["check", "deprecate", "evict", "inspect", "preload", "reactivate", "retire", "verify"]
    },
    "images promote": "web:1",
    "images history": "web",
    "images abort": "web",
    "images promotions": "web",
    "images what-if": "--retire web",
    "images rollback": "web",
    "images publish": ".",
    "publishes cancel": "pub_1",
    "templates create": ". --name work",
    "templates get": "work",
    "templates rm": "work",
    "templates update": "work .",
    "publishes log": "pub_1",
}
HERE = {"up", "core", "down", "backup", "restore", "doctor", "login", "audit verify"}
"""What needs no installation."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HERE])
def test_without_an_installation_each_says_so_and_what_to_do(
    nowhere: None, sandbay: Sandbay, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hush"))
    arguments = NEEDS.get(name, "").split()
    said = sandbay(*name.split(), *arguments)
    assert (said.code, said.out) == (125, "")
    assert "(no_context)" in said.err
    assert "sandbay up" in said.err
    assert sandbay(*name.split(), "--json", *arguments).refusal["code"] == "no_context"
