"""Projects, keys, nodes, pools, audit, explain, readiness as it changes, login, and what the shell completes."""

import io
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from sandbay.domain.chain import chained
from tests.cli import test_cli
from tests.cli.test_cli import IMAGE, MAIN, READINESS, Point, Sandbay, Table, answering
from tests.support.scripted_http import DIGEST, SESSION, Answer, Asked, page, refusal, scripted, session

environ, nowhere, sandbay, catalog = test_cli.environ, test_cli.nowhere, test_cli.sandbay, test_cli.catalog

PROJECTS = "/core/v1/projects"
PROJECT = {"id": "prj_1", "name": "growth", "created_at": "2026-01-01T00:00:00Z", "runtime_image_id": None}
KEY = {
    "id": "key_1",
    "name": "ci",
    "principal": "ci",
    "created_at": "2026-01-02T03:04:05.678Z",
    "revoked_at": None,
}
NODE = {
    "id": "nod_1",
    "name": "n1",
    "provider": "oci",
    "runtime": "runc",
    "platform": "linux/amd64",
    "slots": 8,
    "active": 3,
    "online": True,
    "warm": True,
    "last_seen": "2026-01-02T03:04:05Z",
    "labels": {},
}
ENTRY = {
    "id": "aud_1",
    "at": "2026-01-02T03:04:05.678901Z",
    "principal": "local\x1b[2J",
    "action": "session.create",
    "subject": SESSION,
    "outcome": "done",
    "details": {"image": "web"},
    "request_id": "req_1",
}
WHAT_IF = "POST /core/v1/sandbox/what-if"
CHANGES = {
    "changes": [
        {
            "kind": "template",
            "name": "work",
            "project": "growth",
            "before": {"image": "web:7", "reason": None},
            "after": {"image": None, "reason": "image_retired"},
        }
    ]
}
EXPLAINED = {
    "resolved": session()["image"],
    "refusal": None,
    "trail": [
        {"level": "session", "outcome": "silent", "subject": None, "said": None, "reason": None, "enforced": False},
        {"level": "scope", "outcome": "chosen", "subject": "team:t", "said": "web", "reason": None, "enforced": True},
    ],
    "placement": {"pool": None, "reason": "no_node_online", "pools": {"local": {"offline": 2}}},
}
NO: dict[str, Any] = {
    "resolved": None,
    "refusal": {"type": "not_found_error", "code": "image_unknown", "message": "no such image"},
    "trail": [],
    "placement": None,
}

SANDBOX, TEAM = "/core/v1/sandbox", "scope:team:growth"
SCOPE = {"name": "team:growth", "parent": "org:acme", "project": None, "created_at": KEY["created_at"], "revision": 3}
WRITTEN = {"subject": TEAM, "author": "ann", "at": KEY["created_at"], "reason": "why not", "revision": 2}
BINDING = {**WRITTEN, "mode": "enforce", "runtime_image_id": "web:7"}
LIST = {**WRITTEN, "everything": False, "images": ["web"], "labels": [{"tier": "gold", "os": "deb"}]}
OVERRIDE, GRANT = {**WRITTEN, "override": "deny"}, {**WRITTEN, "image": "web"}
SELECTION: Table = {
    f"GET {SANDBOX}/scopes": page(SCOPE),
    "GET /v1/scopes": page(SCOPE),
    f"PUT {SANDBOX}/scopes/team%3Agrowth": Answer(body=SCOPE),
    "PUT /v1/scopes/team%3Agrowth": Answer(body=SCOPE),
    f"DELETE {SANDBOX}/scopes/team%3Agrowth": Answer(204, b""),
    f"GET {SANDBOX}/bindings": page(BINDING),
    "GET /v1/agents/coder/binding": Answer(body={**BINDING, "subject": "agent:growth:coder"}),
    f"PUT {SANDBOX}/bindings/scope%3Ateam%3Agrowth": Answer(body=BINDING),
    "PUT /v1/scopes/team%3Agrowth/binding": Answer(body=BINDING),
    f"DELETE {SANDBOX}/bindings/scope%3Ateam%3Agrowth": Answer(204, b""),
    f"GET {SANDBOX}/allow-lists": page(LIST),
    f"PUT {SANDBOX}/allow-lists/scope%3Ateam%3Agrowth": Answer(body=LIST),
    f"GET {SANDBOX}/overrides": page(OVERRIDE),
    f"PUT {SANDBOX}/overrides/scope%3Ateam%3Agrowth": Answer(body=OVERRIDE),
    f"GET {SANDBOX}/grants": page(GRANT),
    f"PUT {SANDBOX}/grants/scope%3Ateam%3Agrowth/web": Answer(body=GRANT),
    f"DELETE {SANDBOX}/grants/scope%3Ateam%3Agrowth/web": Answer(204, b""),
    f"PATCH {PROJECTS}/growth": Answer(body={**PROJECT, "scope_required": True}),
}


@pytest.fixture
def table(catalog: Table) -> Table:
    return {
        **catalog,
        **SELECTION,
        f"GET {PROJECTS}": page(PROJECT),
        f"POST {PROJECTS}": Answer(201, PROJECT),
        f"GET {PROJECTS}/default/keys": page(KEY),
        f"GET {PROJECTS}/growth/keys": page(KEY, {**KEY, "id": "key_2", "revoked_at": "2026-01-03T00:00:00Z"}),
        f"POST {PROJECTS}/growth/keys": Answer(201, {**KEY, "secret": "sbp_hush"}),
        f"DELETE {PROJECTS}/growth/keys/key_1": Answer(204, b""),
        f"GET {PROJECTS}/growth/sessions": page(session()),
        "GET /core/v1/sandbox/nodes": page(NODE, {**NODE, "name": "n2", "online": False, "last_seen": None}),
        "GET /core/v1/audit": page(ENTRY),
        "GET /v1/project": Answer(body=PROJECT),
        "PATCH /v1/project": Answer(body={**PROJECT, "runtime_image_id": "web:stable"}),
        "POST /v1/explain": Answer(body=EXPLAINED),
        WHAT_IF: Answer(body=CHANGES),
        "PUT /core/v1/sandbox/deployment": catalog["GET /core/v1/sandbox/deployment"],
    }


@pytest.mark.parametrize(
    "command, shows",
    [
        ("projects ls", "growth"),
        ("projects create growth", "prj_1"),
        ("projects show", "growth"),
        ("projects set --image web:stable", "web:stable"),
        ("keys ls", "2026-01-02 03:04:05"),
        ("keys ls --project growth", "2026-01-03 00:00:00"),
        ("keys rm key_1 --project growth", "revoked"),
        ("nodes ls", "3 of 8"),
        ("nodes ls", "away"),
        ("pools ls", "1.0 GiB"),
        ("deployment set --default-image web", "local"),
        ("audit", "local\\x1b[2J"),
        ("audit", "2026-01-02 03:04:05"),
        ("sessions ls --project growth", SESSION),
        ("images explain web", DIGEST),
        ("images explain", "local: offline 2"),
        ("images explain web", "web (enforced)"),
        ("images what-if --bind scope:team:t=web", "web:7"),
        ("images what-if --retire web", "image_retired"),
        ("images deprecate web", "advised against"),
        ("images reactivate web", "again"),
        ("scopes ls", "org:acme"),
        ("scopes ls --own", "team:growth"),
        ("scopes set team:growth --parent org:acme", "below org:acme"),
        ("bindings ls", "web:7"),
        ("bindings get agent:coder", "agent:growth:coder"),
        ("bindings set scope:team:growth web:7 --enforce", "enforce"),
        ("allow-lists ls", "web tier=gold,os=deb"),
        ("allow-lists set scope:team:growth --image web", "tier=gold,os=deb"),
        ("overrides ls", "deny"),
        ("overrides set scope:team:growth deny", "deny"),
        ("grants ls", "ann"),
        ("grants add scope:team:growth web", "may use"),
    ],
)
def test_each_speaks_to_people_and_to_programs(
    environ: Point, sandbay: Sandbay, table: Table, command: str, shows: str
) -> None:
    with scripted(answering(table)) as server:
        environ(server.url)
        people = sandbay(*command.split())
        assert (people.code, people.err) == (0, "")
        assert shows in people.out
        assert "\x1b" not in people.out
        programs = sandbay(*command.split(), "--json")
        assert programs.code == 0
        json.loads(programs.out)
        quiet = sandbay(*command.split(), "-q")
        assert quiet.code == 0
        assert len(quiet.out) < len(people.out)


@pytest.mark.parametrize(
    "command, what, said",
    [
        ("projects create growth", f"POST {PROJECTS}", {"name": "growth"}),
        ("projects set --image web:stable", "PATCH /v1/project", {"runtime_image_id": "web:stable"}),
        ("projects set --no-image", "PATCH /v1/project", {"runtime_image_id": None}),
        ("keys create ci --project growth", f"POST {PROJECTS}/growth/keys", {"name": "ci"}),
        (
            "keys create ci --project growth --principal build-7",
            f"POST {PROJECTS}/growth/keys",
            {"name": "ci", "principal": "build-7"},
        ),
        (
            "images explain web --platform linux/arm64",
            "POST /v1/explain",
            {"runtime_image_id": "web", "platform": "linux/arm64"},
        ),
        ("images explain", "POST /v1/explain", {}),
        (
            "images explain --agent coder --scope team:t",
            "POST /v1/explain",
            {"agent": "coder", "scope": "team:t"},
        ),
        (
            "images what-if --bind scope:team:t=web:7 --enforce",
            WHAT_IF,
            {"binding": {"subject": "scope:team:t", "runtime_image_id": "web:7", "mode": "enforce"}},
        ),
        (
            "images what-if --bind agent:growth:coder=",
            WHAT_IF,
            {"binding": {"subject": "agent:growth:coder", "runtime_image_id": None, "mode": "prefer"}},
        ),
        (
            "images what-if --allow deployment=web,base",
            WHAT_IF,
            {"allow_list": {"subject": "deployment", "images": ["web", "base"]}},
        ),
        (
            "images what-if --allow project:growth=",
            WHAT_IF,
            {"allow_list": {"subject": "project:growth", "images": []}},
        ),
        (
            "images what-if --promote web:canary=7",
            WHAT_IF,
            {"channel": {"image": "web", "channel": "canary", "release": 7}},
        ),
        ("images what-if --promote web=7", WHAT_IF, {"channel": {"image": "web", "channel": "stable", "release": 7}}),
        ("images what-if --retire web", WHAT_IF, {"retire": {"image": "web"}}),
        ("images what-if --retire web:7", WHAT_IF, {"retire": {"image": "web", "release": 7}}),
        (
            "keys create ci --project growth --scope team:growth --agent coder --agent writer",
            f"POST {PROJECTS}/growth/keys",
            {"name": "ci", "scope": "team:growth", "agents": ["coder", "writer"]},
        ),
        ("projects scope-required growth", f"PATCH {PROJECTS}/growth", {"scope_required": True}),
        ("projects scope-required growth --off", f"PATCH {PROJECTS}/growth", {"scope_required": False}),
        (
            "scopes set team:growth --parent org:acme --project growth",
            f"PUT {SANDBOX}/scopes/team%3Agrowth",
            {"parent": "org:acme", "project": "growth"},
        ),
        ("scopes set team:growth --own --parent org:a", "PUT /v1/scopes/team%3Agrowth", {"parent": "org:a"}),
        (
            "bindings set scope:team:growth web:7 --enforce --reason x --expected-revision 0",
            f"PUT {SANDBOX}/bindings/scope%3Ateam%3Agrowth",
            {"runtime_image_id": "web:7", "mode": "enforce", "reason": "x", "expected_revision": 0},
        ),
        (
            "bindings set scope:team:growth web --own",
            "PUT /v1/scopes/team%3Agrowth/binding",
            {"runtime_image_id": "web"},
        ),
        (
            "allow-lists set scope:team:growth --image web --label tier=gold,os=deb",
            f"PUT {SANDBOX}/allow-lists/scope%3Ateam%3Agrowth",
            {"everything": False, "images": ["web"], "labels": [{"tier": "gold", "os": "deb"}]},
        ),
        (
            "images reactivate web",
            "PATCH /core/v1/sandbox/images/web",
            {"state": "active", "expected_revision": 1},
        ),
    ],
)
def test_what_is_asked_for(
    environ: Point, sandbay: Sandbay, table: Table, command: str, what: str, said: object
) -> None:
    with scripted(answering(table)) as server:
        environ(server.url)
        assert sandbay(*command.split()).code == 0
        assert (server.asked[-1].what, server.asked[-1].json) == (what, said)


@pytest.mark.parametrize(
    "command",
    [
        "projects set",
        "projects set --image web --no-image",
        "scopes set team:growth --own",
        "bindings set scope:team:growth web --own --enforce",
        "allow-lists set deployment",
        "allow-lists set deployment --all --none",
        "allow-lists set deployment --label gold",
        "overrides set deployment maybe",
        "deployment set",
        "deployment set --default-image web --no-default-image",
        "audit --session ses_1 --subject img_1",
        "audit --limit 0",
        "projects create",
        "keys rm",
        "login",
    ],
)
def test_wrong_usage_asks_nobody(environ: Point, sandbay: Sandbay, table: Table, command: str) -> None:
    with scripted(answering(table)) as server:
        environ(server.url)
        assert sandbay(*command.split()).code == 2
        assert server.asked == []


def test_a_new_key_is_all_that_a_script_reads(environ: Point, sandbay: Sandbay, table: Table) -> None:
    with scripted(answering(table)) as server:
        environ(server.url)
        said = sandbay("keys", "create", "ci", "--project", "growth", "-q")
        assert (said.code, said.out, said.err) == (0, "sbp_hush\n", "")
        people = sandbay("keys", "create", "ci", "--project", "growth")
        assert people.out == "sbp_hush\n"
        assert "SANDBAY_API_KEY" in people.err


def test_a_no_is_an_answer_to_explain(environ: Point, sandbay: Sandbay, table: Table) -> None:
    with scripted(answering({**table, "POST /v1/explain": Answer(body=NO)})) as server:
        environ(server.url)
        said = sandbay("images", "explain", "nothing")
        assert (said.code, said.err) == (0, "")
        assert "image_unknown" in said.out
        assert sandbay("images", "explain", "nothing", "-q").out == "image_unknown\n"


def test_the_audit_is_read_no_further_than_asked(environ: Point, sandbay: Sandbay) -> None:
    def script(asked: Asked) -> Answer:
        start = int(asked.query.get("after", "0"))
        return page(*({**ENTRY, "id": f"aud_{start + n}"} for n in range(10)), following=str(start + 10))

    with scripted(script) as server:
        environ(server.url)
        said = sandbay("audit", "--subject", SESSION, "--limit", "13", "-q")
        assert said.out.split() == [f"aud_{n}" for n in range(13)]
        assert [asked.query for asked in server.asked] == [{"subject": SESSION}, {"subject": SESSION, "after": "10"}]


def test_a_deployment_goes_out_edited_and_comes_back(
    environ: Point, sandbay: Sandbay, table: Table, tmp_path: pathlib.Path
) -> None:
    with scripted(answering(table)) as server:
        environ(server.url)
        wanted = json.loads(sandbay("deployment", "show", "--json").out)
        wanted["pools"][0]["admission"] = "paused"
        (tmp_path / "wanted.json").write_text(json.dumps(wanted))
        assert sandbay("deployment", "set", str(tmp_path / "wanted.json"), "--no-default-image").code == 0
        put = server.asked[-1]
        assert put.what == "PUT /core/v1/sandbox/deployment"
        assert put.json["expected_generation"] == wanted["generation"]
        assert put.json["default_image"] is None
        assert put.json["pools"] == wanted["pools"]
        for text in ("{", "[]", "{}", '"x"'):
            (tmp_path / "wanted.json").write_text(text)
            said = sandbay("deployment", "set", str(tmp_path / "wanted.json"), "--json")
            assert (said.code, said.refusal["code"]) == (125, "invalid_body")


def watching(*states: str) -> Callable[[Asked], Answer]:
    """What a node says of the image, look by look; after that nobody answers."""
    looks = iter(states)

    def script(asked: Asked) -> Answer:
        state = next(looks, None)
        return refusal(401, "invalid_api_key") if state is None else page({**READINESS, "state": state})

    return script


@pytest.mark.parametrize("more", [(), ("--json",), ("-q",)])
def test_watching_shows_what_changes(
    environ: Point, sandbay: Sandbay, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sandbay.cli.readiness._EVERY", 0.0)
    with scripted(watching("queued", "queued", "pulling", "ready", "ready")) as server:
        environ(server.url)
        said = sandbay("images", "readiness", "web", "--watch", *more)
        assert said.code == 125
        lines = said.out.splitlines()
        seen = [json.loads(line)["state"] for line in lines] if more == ("--json",) else lines
        assert [state in line for state, line in zip(("queued", "pulling", "ready"), seen, strict=True)] == [True] * 3


def test_watching_ends_when_it_is_told_to(tmp_path: pathlib.Path) -> None:
    with scripted(lambda asked: page(READINESS)) as server:
        env = {**os.environ, "SANDBAY_URL": server.url, "SANDBAY_ADMIN_KEY": "k", "HOME": str(tmp_path)}
        # Whoever runs the tests in the background has them ignore the signal, and what they start.
        main = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {MAIN}"
        command = [sys.executable, "-c", main, "images", "readiness", "web", "--watch", "-q"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True) as watch:
            assert watch.stdout is not None
            assert watch.stdout.readline() == "web  n1  ready\n"
            watch.send_signal(signal.SIGINT)
            _, err = watch.communicate(timeout=30)
    assert watch.returncode == 130
    assert "Traceback" not in err


LOGIN = {
    "GET /v1/project": Answer(body=PROJECT),
    "GET /core/v1/sandbox/deployment": Answer(
        body={"generation": 1, "default_image": None, "default_platform": "linux/amd64", "pools": []}
    ),
}


@pytest.mark.usefixtures("nowhere")
def test_login_keeps_both_keys_for_the_user_alone(
    sandbay: Sandbay, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".config" / "sandbay" / "context.json"
    with scripted(answering(LOGIN)) as server:
        for key in ("sbp_hush", "sba_hush"):
            monkeypatch.setattr("sys.stdin", io.StringIO(f"{key}\n"))
            said = sandbay("login", server.url + "/", "--key-stdin")
            assert (said.code, said.err) == (0, "")
            assert "hush" not in said.out
        assert json.loads(file.read_text()) == {"url": server.url, "api_key": "sbp_hush", "admin_key": "sba_hush"}
        assert file.stat().st_mode & 0o777 == 0o600
        assert [entry.name for entry in file.parent.iterdir()] == ["context.json"]
        assert sandbay("projects", "show").code == 0
        assert [asked.headers["authorization"] for asked in server.asked] == [
            "Bearer sbp_hush",
            "Bearer sba_hush",
            "Bearer sbp_hush",
        ]
    with scripted(answering(LOGIN)) as other:
        monkeypatch.setattr("sys.stdin", io.StringIO("sbp_2"))
        assert sandbay("login", other.url, "--key-stdin", "-q").out == ""
        assert json.loads(file.read_text()) == {"url": other.url, "api_key": "sbp_2"}


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    "key, code", [("sbp_wrong", "invalid_api_key"), ("", "no_context"), ("sbp_\x1b", "invalid_context")]
)
def test_a_key_that_does_not_work_is_not_kept(
    sandbay: Sandbay, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, key: str, code: str
) -> None:
    with scripted(lambda asked: refusal(401, "invalid_api_key", "authentication_error")) as server:
        monkeypatch.setattr("sys.stdin", io.StringIO(key))
        said = sandbay("login", server.url, "--key-stdin", "--json")
        assert (said.code, said.refusal["code"]) == (125, code)
    assert not (tmp_path / ".config").exists()


def completed(line: str, environment: dict[str, str]) -> list[str]:
    """What bash is offered for the last word of the line."""
    words = line.split(" ")
    asked = {"_SANDBAY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    env = {**os.environ, **environment, **asked}
    done = subprocess.run([sys.executable, "-c", MAIN], capture_output=True, text=True, check=False, env=env)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_shell_completes_names_and_ids(tmp_path: pathlib.Path, table: Table) -> None:
    live, over = session(), session("ended", id="ses_00000000000000000002")
    table["GET /v1/sessions"] = page(live, over)
    table["GET /v1/images"] = page({"name": "shown", "state": "active"})
    table["GET /core/v1/sandbox/images"] = page(IMAGE, {**IMAGE, "name": "base"})
    with scripted(answering(table)) as server:
        env = {"SANDBAY_URL": server.url, "SANDBAY_API_KEY": "k", "SANDBAY_ADMIN_KEY": "a", "HOME": str(tmp_path)}
        assert completed("sandbay images inspect ", env) == ["web", "base"]
        assert completed("sandbay run w", env) == ["web"]
        assert completed("sandbay sessions get s", env) == [SESSION]
        assert completed("sandbay sessions create --image b", env) == ["base"]
        assert completed("sandbay proj", env) == ["projects"]
        assert completed("sandbay run s", {**env, "SANDBAY_ADMIN_KEY": ""}) == ["shown"]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9", "nonsense"])
def test_a_shell_that_finds_nobody_is_offered_nothing(tmp_path: pathlib.Path, url: str) -> None:
    env = {"SANDBAY_URL": url, "SANDBAY_API_KEY": "k", "HOME": str(tmp_path), "SANDBAY_HOME": str(tmp_path)}
    assert completed("sandbay run ", env) == []


def test_long_work_without_news_of_its_own_is_shown_too(
    environ: Point, sandbay: Sandbay, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbay.cli.progress._QUIET_FOR", 0.0)
    slow = itertools.chain([session("ending")], itertools.repeat(session("ended")))
    table[f"DELETE /v1/sessions/{SESSION}"] = Answer(202, next(slow))
    shown: list[str] = []
    monkeypatch.setattr("sandbay.cli.progress.note", shown.append)

    def script(asked: Asked) -> Answer:
        while asked.method == "GET" and not shown:
            pass
        return table.get(asked.what, Answer(body=next(slow)))

    with scripted(script) as server:
        environ(server.url)
        assert sandbay("sessions", "rm", SESSION).code == 0
        assert shown == ["sessions: ending"]
        assert sandbay("sessions", "rm", SESSION, "--json").code == 0
        assert shown == ["sessions: ending"]


def test_an_export_of_the_audit_is_written_as_it_came_and_verified(
    environ: Point, sandbay: Sandbay, tmp_path: pathlib.Path
) -> None:
    lines = list(chained([{"id": "aud_1"}, {"id": "aud_2"}]))
    with scripted(
        answering({"GET /core/v1/audit/export": Answer(pieces=lines, type="application/x-ndjson")})
    ) as server:
        environ(server.url)
        said = sandbay("audit", "--export")
        assert (said.code, said.out.encode()) == (0, b"".join(lines))
    file = tmp_path / "audit.jsonl"
    file.write_bytes(b"".join(lines))
    assert "2 entries" in sandbay("audit", "verify", str(file)).out
    assert json.loads(sandbay("audit", "verify", str(file), "--json").out)["entries"] == 2
    file.write_bytes(b"".join(lines[:-1]))
    said = sandbay("audit", "verify", "--json", str(file))
    assert (said.code, said.refusal["code"], said.refusal["details"]["fault"]) == (125, "digest_mismatch", "cut_off")
    assert sandbay("audit", "verify", str(tmp_path / "none")).code == 2


def test_a_session_is_accounted_for(environ: Point, sandbay: Sandbay) -> None:
    image = {"name": "web", "release": 3, "digest": DIGEST, "reference": "web", "decided_by": {"level": "project"}}
    moments = {"created_at": "2026-01-02T03:04:05Z", "ended_at": "2026-01-02T04:04:05Z"}
    account = {
        "session": SESSION,
        "project": "prj_1",
        "principal": "ann",
        "status": "ended",
        "image": image,
        "frozen_digest": DIGEST,
        "trail": [{"level": "project", "outcome": "chosen", "said": "web"}],
        "entries": [],
    }
    with scripted(answering({f"GET /core/v1/audit/sessions/{SESSION}": Answer(body={**account, **moments})})) as server:
        environ(server.url)
        shown = sandbay("audit", "--session", SESSION).out
        assert "web:3" in shown
        assert "project  chosen  web" in shown
        assert sandbay("audit", "--session", SESSION, "-q").out == "web:3\n"
        assert json.loads(sandbay("audit", "--session", SESSION, "--json").out)["image"] == image
