"""`sandbay registries`, and registering from one."""

import base64
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli import test_cli
from tests.cli.test_cli import Point, Sandbay, Table, answering
from tests.support.scripted_http import Answer, page, scripted

environ, sandbay, catalog = test_cli.environ, test_cli.sandbay, test_cli.catalog

HOST = "reg.example:5000"
SECRETS = "/core/v1/sandbox/registry-secrets"
PUT = f"PUT {SECRETS}/reg.example%3A5000"
SECRET = {"registry": HOST, "updated_at": "2026-01-01T00:00:00Z"}
REGISTRIES = {
    PUT: Answer(body=SECRET),
    f"PUT {SECRETS}/docker.io": Answer(body={**SECRET, "registry": "docker.io"}),
    f"GET {SECRETS}": page(SECRET),
    f"DELETE {SECRETS}/reg.example%3A5000": Answer(204),
}


def put(server: Any) -> Any:
    (asked,) = [asked for asked in server.asked if asked.what.startswith("PUT")]
    return asked.json


def test_register_from_a_registry_uploads_nothing(environ: Point, sandbay: Sandbay, catalog: Table) -> None:
    with scripted(answering(catalog)) as server:
        environ(server.url)
        said = sandbay("images", "register", "web", "--from-registry", f"{HOST}/web:1", "--platform", "linux/amd64")
        assert (said.code, said.out.split()[0]) == (0, "web:3")
        (register,) = [asked for asked in server.asked if asked.what.endswith("/releases")]
        assert register.json == {"source": {"registry": f"{HOST}/web:1"}, "platforms": ["linux/amd64"]}
        assert not [asked for asked in server.asked if "uploads" in asked.what]


def test_login_reads_the_password_and_never_shows_it(
    environ: Point, sandbay: Sandbay, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ((), ("--json",), ("-q",)):
        with scripted(answering(REGISTRIES)) as server:
            environ(server.url)
            monkeypatch.setattr("sys.stdin", io.StringIO("hush\n"))
            said = sandbay("registries", "login", HOST, "-u", "fx", "--password-stdin", *options)
            assert said.code == 0
            assert "hush" not in said.out + said.err
            assert put(server) == {"username": "fx", "password": "hush"}


def test_ls_and_logout(environ: Point, sandbay: Sandbay) -> None:
    with scripted(answering(REGISTRIES)) as server:
        environ(server.url)
        assert HOST in sandbay("registries", "ls").out
        assert json.loads(sandbay("registries", "ls", "--json").out)["items"] == [SECRET]
        assert sandbay("registries", "ls", "-q").out == f"{HOST}\n"
        assert sandbay("registries", "logout", HOST).code == 0
        assert sandbay("registries", "logout", "other").code == 125


def test_wrong_usage(environ: Point, sandbay: Sandbay) -> None:
    with scripted(answering(REGISTRIES)) as server:
        environ(server.url)
        for arguments in (["registries"], ["registries", "login"], ["registries", "login", HOST, "--password-stdin"]):
            assert sandbay(*arguments).code == 2
        assert server.asked == []


def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Any) -> None:
    (tmp_path / "docker").mkdir(exist_ok=True)
    (tmp_path / "docker" / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """A credential helper called `fx` that answers for HOST only."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "docker-credential-fx"
    program.write_text(f'#!/bin/sh\nread -r asked\n[ "$1 $asked" = "get {HOST}" ] || exit 1\necho \'{answer}\'\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def pair(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize(
    "host, config",
    [
        (HOST, {"auths": {HOST: pair("fx:hush:hush")}}),
        (HOST, {"auths": {f"https://{HOST}": pair("fx:hush:hush")}}),
        ("docker.io", {"auths": {"https://index.docker.io/v1/": pair("fx:hush:hush")}}),
        (HOST, {"credHelpers": {HOST: "fx"}, "auths": {HOST: pair("other:other")}}),
        (HOST, {"credsStore": "fx"}),
    ],
)
def test_what_docker_knows_is_taken(
    environ: Point, sandbay: Sandbay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, config: Any
) -> None:
    docker(tmp_path, monkeypatch, config)
    helper(tmp_path, monkeypatch, '{"Username":"fx","Secret":"hush:hush"}')
    with scripted(answering(REGISTRIES)) as server:
        environ(server.url)
        said = sandbay("registries", "login", host, "--from-docker")
        assert said.code == 0, said.err
        assert put(server) == {"username": "fx", "password": "hush:hush"}


@pytest.mark.parametrize(
    "config",
    [
        None,
        "{",
        "[]",
        {"auths": {"other": pair("fx:hush")}},
        {"auths": {HOST: pair("no colon")}},
        {"auths": {HOST: {"auth": "%"}}},
        {"auths": {HOST: {}}},
        {"auths": []},
        {"credsStore": "../fx"},
        {"credsStore": "none-of-this-name"},
        {"credHelpers": {HOST: "fx"}},
    ],
)
def test_what_docker_does_not_know(
    environ: Point, sandbay: Sandbay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Any
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    if config is not None:
        docker(tmp_path, monkeypatch, config)
    helper(tmp_path, monkeypatch, '{"Username":"<token>","Secret":"hush"}')
    with scripted(answering(REGISTRIES)) as server:
        environ(server.url)
        said = sandbay("registries", "login", HOST, "--from-docker", "--json")
        assert (said.code, said.refusal["code"]) == (125, "no_docker_login")
        assert server.asked == []
