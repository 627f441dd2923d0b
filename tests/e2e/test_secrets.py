"""A project's secret in a real sandbox: programs have it, and nothing that we keep does."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.installation import Installation

pytestmark = [pytest.mark.real, pytest.mark.slow]
VALUE = "hush-2f6c1d0e-of-nobody"


def _files_with_it(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()]


def _command_lines() -> bytes:
    return b"".join(
        path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.name != str(os.getpid())
    )


def test_programs_have_it_and_nothing_that_is_kept_does(house: Installation, tmp_path: Path) -> None:
    house.ok("secrets", "set", "gh", stdin=f"{VALUE}\n".encode())
    assert house.ok("secrets", "ls", "-q").out == "gh\n"
    template = tmp_path / "template.toml"
    template.write_text(
        'name = "work"\nsetup_commands = ["echo ${#TOKEN} > /workspace/length"]\n[env.TOKEN]\nsecret = "gh"\n'
    )
    house.ok("templates", "create", str(template))
    session = house.ok("sessions", "create", "--image", "plain", "--template", "work", "--json").data["id"]
    assert house.ok("sessions", "exec", session, "--", "cat", "length").out == f"{len(VALUE)}\n", "the setup had it"
    assert house.ok("sessions", "exec", session, "--shell", "echo $TOKEN").out == f"{VALUE}\n"
    sleeping = subprocess.Popen(
        [Path(__file__).parents[2] / ".venv/bin/sandbay", "sessions", "exec", session, "--shell", "sleep 3"],
        env=house.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    assert VALUE.encode() not in _command_lines(), "no argument of a program of ours shows it"
    assert sleeping.wait(60) == 0
    assert house.ok("run", "plain", "--secret", "T=gh", "--", "sh", "-c", "echo $T").out == f"{VALUE}\n"
    told = [
        house.ok("sessions", "get", session, "--json").out,
        house.ok("audit", "--export").out,
        house.ok("templates", "get", "work", "--json").out,
        house.ok("secrets", "ls", "--json").out,
        house.ok("secrets", "ls", "--project", "default", "--json").out,
    ]
    assert VALUE not in "".join(told)
    assert _files_with_it(house.home) == _files_with_it(house.run) == []
    house.ok("secrets", "rm", "gh")
    refused = house.cli("sessions", "exec", session, "--json", "--", "true")
    assert refused.refusal["code"] == "secret_unknown"
    assert "sandbay secrets ls" in house.cli("sessions", "exec", session, "--", "true").err
    house.ok("sessions", "rm", session)
    assert house.ok("run", "plain", "--", "cat", "/which").out == "plain\n"
