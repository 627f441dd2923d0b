"""The command line as scripts see it: arguments, standard output and error, exit codes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbay.cli.main import run
from tests.support.scripted_http import (
    DIGEST,
    SESSION,
    Answer,
    Asked,
    ended,
    page,
    refusal,
    scripted,
    session,
)

CREATE, DELETE = "POST /v1/sessions", f"DELETE /v1/sessions/{SESSION}"
EXEC, COLLECT = f"GET /v1/sessions/{SESSION}/exec", f"POST /v1/sessions/{SESSION}/exec"
MAIN = "import sys; from sandbay.cli.main import run; sys.exit(run())"

Table = dict[str, Answer]


def answering(table: Table) -> Callable[[Asked], Answer]:
    return lambda asked: table.get(asked.what, refusal(404, "not_found", "not_found_error"))


def running(*messages: bytes | str) -> Table:
    """A Session that can be made, runs one command with this output, and goes."""
    return {
        CREATE: Answer(201, session()),
        EXEC: Answer(messages=messages),
        DELETE: Answer(202, session("ending")),
    }


@pytest.fixture
def environ(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Point this process at a server, and at no context file of the machine."""
    monkeypatch.setenv("SANDBAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SANDBAY_URL", raising=False)

    def point(url: str) -> None:
        monkeypatch.setenv("SANDBAY_URL", url)
        monkeypatch.setenv("SANDBAY_API_KEY", "sbp_1")
        monkeypatch.setenv("SANDBAY_ADMIN_KEY", "sba_1")

    return point


Point = Callable[[str], None]


@pytest.fixture
def nowhere(environ: Point, monkeypatch: pytest.MonkeyPatch) -> None:
    """No installation is known here."""
    environ("http://127.0.0.1:9")
    for name in ("SANDBAY_URL", "SANDBAY_API_KEY", "SANDBAY_ADMIN_KEY", "SANDBAY_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sandbay.sdk.context.DEFAULT_HOME", "/nonexistent")


class Said:
    """A finished command line."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def refusal(self) -> Any:
        """The envelope that stands alone on standard error."""
        assert self.out == ""
        return json.loads(self.err)["error"]


@pytest.fixture
def sandbay(capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*arguments: str) -> Said:
        code = run(arguments=arguments)
        sys.stdout.flush()
        captured = capfd.readouterr()
        return Said(code, captured.out, captured.err)

    return call


Sandbay = Callable[..., Said]


def test_run_passes_bytes_and_the_exit_code_through(environ: Point, sandbay: Sandbay) -> None:
    with scripted(answering(running(b"\1out\n", b"\2err\n", ended(7)))) as server:
        environ(server.url)
        said = sandbay("run", "web:stable", "--", "sh", "-c", "x")
        assert (said.code, said.out, said.err) == (7, "out\n", "err\n")
        assert server.whats() == [CREATE, EXEC, DELETE]
        assert server.asked[0].json == {"runtime_image_id": "web:stable", "wait_seconds": 1800}
        assert server.asked[1].json == {"argv": ["sh", "-c", "x"], "image_command": True}


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["-x"],
        ["--json"],
        ["ls", "--env", "A=B", "-q"],
        ["--", "--"],
        ["a", "--", "b"],
        [""],
        ["a b", "$HOME", "*"],
        ["-i", "--timeout", "x"],
    ],
)
@pytest.mark.parametrize("command", [["run", "web"], ["sessions", "exec", SESSION]])
def test_what_stands_behind_the_dashes_is_passed_on_untouched(
    environ: Point, sandbay: Sandbay, command: list[str], argv: list[str]
) -> None:
    with scripted(answering(running(ended(0)))) as server:
        environ(server.url)
        said = sandbay(*command, "--", *argv)
        assert (said.code, said.out, said.err) == (0, "", "")
        assert next(asked for asked in server.asked if asked.what == EXEC).json["argv"] == argv


def test_all_options_of_run(environ: Point, sandbay: Sandbay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_HERE", "1")
    monkeypatch.delenv("NOT_SET", raising=False)
    options = "--entrypoint /bin/e --env A=b=c --env FROM_HERE --env NOT_SET --env EMPTY= --user u:g --workdir /w"
    more = "--platform linux/arm64 --timeout 2.5 --wait 0 --network disabled"
    with scripted(answering(running(ended(0)))) as server:
        environ(server.url)
        assert sandbay("run", *options.split(), *more.split(), "web", "--", "c").code == 0
        assert server.asked[0].json == {
            "runtime_image_id": "web",
            "wait_seconds": 0,
            "platform": "linux/arm64",
            "network": "disabled",
        }
        assert server.asked[1].json == {
            "argv": ["c"],
            "image_command": True,
            "entrypoint": ["/bin/e"],
            "env": {"A": "b=c", "FROM_HERE": "1", "EMPTY": ""},
            "user": "u:g",
            "workdir": "/w",
            "timeout": 2.5,
        }


def test_run_without_arguments_is_the_images_own_command(environ: Point, sandbay: Sandbay) -> None:
    with scripted(answering(running(ended(0)))) as server:
        environ(server.url)
        sandbay("run", "web", "--entrypoint", "")
        assert server.asked[1].json == {"image_command": True, "entrypoint": []}


def test_run_as_json_is_one_document(environ: Point, sandbay: Sandbay) -> None:
    result = {"exit_code": 3, "timed_out": False, "stdout": "b3V0", "stderr": "", "stdout_bytes": 3, "stderr_bytes": 0}
    flags = {"stdout_truncated": False, "stderr_truncated": False}
    with scripted(answering({**running(), COLLECT: Answer(body=result | flags)})) as server:
        environ(server.url)
        said = sandbay("run", "--json", "web", "--", "x")
        assert said.code == 3
        document = json.loads(said.out)
        assert (document["stdout"], document["exit_code"], document["image"]["digest"]) == ("out", 3, DIGEST)


@pytest.mark.parametrize("code", ["image_unknown", "image_unsupported", "image_not_ready", "a_code_of_tomorrow"])
def test_a_refusal_is_two_lines_and_125(environ: Point, sandbay: Sandbay, code: str) -> None:
    with scripted(answering({CREATE: refusal(400, code, details={"n": 1})})) as server:
        environ(server.url)
        said = sandbay("run", "weg", "--", "true")
        assert (said.code, said.out) == (125, "")
        first, second = said.err.splitlines()
        assert first == f"sandbay: because {code} ({code})"
        assert second.startswith("  ")
        assert server.whats() == [CREATE]


def test_where_there_is_nothing_to_add_nothing_is_added(environ: Point, sandbay: Sandbay) -> None:
    with scripted(answering({CREATE: refusal(400, "a_code_of_tomorrow")})) as server:
        environ(server.url)
        assert sandbay("run", "weg", "--", "true").err == "sandbay: because a_code_of_tomorrow (a_code_of_tomorrow)\n"


def test_a_bad_body_names_its_field_and_where_to_look(environ: Point, sandbay: Sandbay) -> None:
    with scripted(answering({CREATE: refusal(400, "invalid_body", param="env")})) as server:
        environ(server.url)
        first, second = sandbay("run", "weg", "--", "true").err.splitlines()
        assert first == "sandbay: env: because invalid_body (invalid_body)"
        assert "--help" in second


def test_with_json_the_envelope_stands_alone(environ: Point, sandbay: Sandbay) -> None:
    answer = refusal(400, "image_unknown", param="runtime_image_id", details={"image": "weg"})
    with scripted(answering({CREATE: answer})) as server:
        environ(server.url)
        said = sandbay("run", "weg", "--json", "--", "true")
        assert said.code == 125
        assert json.loads(said.err) == answer.body


def test_a_json_behind_the_dashes_is_not_ours(environ: Point, sandbay: Sandbay) -> None:
    with scripted(answering({CREATE: refusal(400, "image_unknown")})) as server:
        environ(server.url)
        assert sandbay("run", "weg", "--", "x", "--json").err.startswith("sandbay: ")


@pytest.mark.parametrize(
    "table, code",
    [
        ({EXEC: refusal(422, "no_command")}, "no_command"),
        ({EXEC: Answer(messages=[b"\1"])}, "stream_lost"),
        ({EXEC: Answer(messages=[ended(None, timed_out=True)])}, "timed_out"),
        ({EXEC: Answer(drop=True)}, "connection_lost"),
        ({EXEC: Answer(502, b"<html>")}, "bad_answer"),
    ],
)
def test_whatever_becomes_of_the_command_the_session_goes(
    environ: Point, sandbay: Sandbay, table: Table, code: str
) -> None:
    with scripted(answering({**running(), **table})) as server:
        environ(server.url)
        said = sandbay("run", "web", "--", "x")
        assert said.code == 125
        assert f"({code})" in said.err
        assert server.whats() == [CREATE, EXEC, DELETE]


@pytest.mark.parametrize("code", [0, 1, 2, 125, 126, 127, 137, 255])
def test_exit_codes_of_the_command_are_its_own(environ: Point, sandbay: Sandbay, code: int) -> None:
    with scripted(answering(running(ended(code)))) as server:
        environ(server.url)
        said = sandbay("run", "web", "-q", "--", "x")
        assert (said.code, "x: probably" in said.err) == (code, code in (126, 127))
        said = sandbay("sessions", "exec", SESSION, "--shell", "x")
        assert (said.code, said.err) == (code, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "web", "--bogus"],
        ["run", "web", "--timeout", "soon"],
        ["run", "web", "--wait", "-1"],
        ["run", "web", "--wait", "1801"],
        ["run", "web", "--env", "=x"],
        ["nothing"],
        ["images"],
        ["images", "register", "web"],
        ["images", "register", "web", "--from-layout", "x", "--tool", "node"],
        ["images", "register", "web", "--from-layout", "x", "--tool", "=node --version"],
        ["images", "register", "web", "--from-layout", "x", "--tool", "node= "],
        ["images", "register", "web", "--from-layout", "x", "--tool", "a=b", "--tool", "a=c"],
        ["images", "register", "web", "--from-layout", "x", "--from-archive", "y"],
        ["sessions", "exec", SESSION],
        ["sessions", "exec", SESSION, "--shell", "x", "--", "y"],
        ["sessions", "cp", "a", "b"],
        ["sessions", "cp", f"{SESSION}:a", f"{SESSION}:b"],
        ["sessions", "rm"],
    ],
)
def test_wrong_usage_is_2_and_asks_nobody(environ: Point, sandbay: Sandbay, arguments: list[str]) -> None:
    with scripted(answering({})) as server:
        environ(server.url)
        said = sandbay(*arguments)
        assert (said.code, said.out) == (2, "")
        assert "Traceback" not in said.err
        assert said.err
        assert server.asked == []


def test_no_server_says_how_to_start_one(environ: Point, sandbay: Sandbay) -> None:
    environ("http://127.0.0.1:1")
    said = sandbay("images", "ls")
    assert said.code == 125
    assert "(unreachable)" in said.err
    assert "sandbay up --detach" in said.err
    assert sandbay("images", "ls", "--json").refusal["code"] == "unreachable"


def test_no_context_says_how_to_get_one(environ: Point, sandbay: Sandbay) -> None:
    said = sandbay("run", "web")
    assert said.code == 125
    assert "sandbay up --detach" in said.err


def test_a_sessions_life(environ: Point, sandbay: Sandbay) -> None:
    one = f"/v1/sessions/{SESSION}"
    table = running(b"\1hi", ended(0)) | {
        "GET /v1/sessions": page(session()),
        f"GET /core/v1/sandbox/sessions/{SESSION}": Answer(body=session(node="n1", runtime="runc", host_pid=4711)),
        f"GET {one}": Answer(body=session()),
    }
    with scripted(answering(table)) as server:
        environ(server.url)
        created = sandbay("sessions", "create", "--image", "web", "--env", "A=b", "--json")
        assert json.loads(created.out)["id"] == SESSION
        assert server.asked[-1].json == {"runtime_image_id": "web", "wait_seconds": 1800, "env": {"A": "b"}}
        assert sandbay("sessions", "create", "-q").out == f"{SESSION}\n"
        assert "decided by session" in sandbay("sessions", "create").out
        assert sandbay("sessions", "ls", "-q").out == f"{SESSION}\n"
        assert json.loads(sandbay("sessions", "ls", "--json").out)["items"][0]["id"] == SESSION
        assert "web:3" in sandbay("sessions", "ls").out
        assert json.loads(sandbay("sessions", "get", SESSION, "--json").out)["host_pid"] == 4711
        assert "4711" in sandbay("sessions", "get", SESSION).out
        assert sandbay("sessions", "exec", SESSION, "--shell", "echo hi").out == "hi"
        assert server.asked[-1].json == {"shell": "echo hi"}
        assert sandbay("sessions", "rm", SESSION).out == f"{SESSION}\n"
        assert [asked.what for asked in server.asked[-2:]] == [DELETE, f"GET {one}"], "it waits until it is gone"


def test_get_without_an_administrator_key(environ: Point, sandbay: Sandbay, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(answering({f"GET /v1/sessions/{SESSION}": Answer(body=session())})) as server:
        environ(server.url)
        monkeypatch.delenv("SANDBAY_ADMIN_KEY")
        assert json.loads(sandbay("sessions", "get", SESSION, "--json").out)["status"] == "running"


def test_rm_of_several_goes_through_all_and_tells_which_failed(environ: Point, sandbay: Sandbay) -> None:
    gone = {DELETE: Answer(202, session("ending")), f"GET /v1/sessions/{SESSION}": Answer(body=session("ended"))}
    with scripted(answering(gone)) as server:
        environ(server.url)
        said = sandbay("sessions", "rm", "ses_x", SESSION, "--json")
        assert said.code == 125
        assert said.refusal["details"]["failed"] == ["ses_x"]
        assert DELETE in server.whats()


def test_the_project_is_the_keys_own(environ: Point, sandbay: Sandbay) -> None:
    project = {"id": "prj_1", "name": "default", "revision": 1}
    with scripted(answering({**running(), "GET /v1/project": Answer(body=project)})) as server:
        environ(server.url)
        assert sandbay("sessions", "create", "--project", "default").code == 0
        said = sandbay("sessions", "create", "--project", "other", "--json")
        assert (said.code, said.refusal["code"]) == (125, "forbidden")
        assert server.whats().count(CREATE) == 1


def test_cp_out_and_in(environ: Point, sandbay: Sandbay, tmp_path: pathlib.Path) -> None:
    files = f"/v1/sessions/{SESSION}/files"
    entry = {"name": "f", "kind": "file", "size": 2, "mode": 0o644}
    table = {
        f"GET {files}/stat": Answer(body=entry),
        f"GET {files}/content": Answer(pieces=[b"hi"], type="application/octet-stream"),
        f"PUT {files}/content": Answer(204, b""),
    }
    with scripted(answering(table)) as server:
        environ(server.url)
        assert json.loads(sandbay("sessions", "cp", f"{SESSION}:/w/f", str(tmp_path / "f"), "--json").out) == {
            "files": 1,
            "bytes": 2,
            "skipped": [],
        }
        assert (tmp_path / "f").read_bytes() == b"hi"
        assert sandbay("sessions", "cp", "-q", str(tmp_path / "f"), f"{SESSION}:a:b").out == ""
        assert (server.asked[-1].query["path"], server.asked[-1].body) == ("a:b", b"hi")
        missing = sandbay("sessions", "cp", str(tmp_path / "nope"), f"{SESSION}:x")
        assert (missing.code, "(local_file)" in missing.err) == (125, True)


IMAGE = {
    "id": "img_1",
    "name": "web",
    "description": "a \x1b[31mred\nimage",
    "labels": {},
    "state": "active",
    "revision": 1,
    "created_at": "2026-01-01T00:00:00Z",
    "channels": {"stable": {"release": 3, "revision": 1}},
    "releases": [1, 3],
    "default": True,
}
RELEASE = {
    "id": "rel_3",
    "image": "web",
    "number": 3,
    "state": "active",
    "fault": None,
    "variants": [
        {
            "platform": "linux/amd64",
            "digest": DIGEST,
            "index_digest": None,
            "providers": ["oci"],
            "size": 2048,
            "layers": [{"digest": DIGEST, "diff_id": DIGEST, "size": 1536, "media_type": "x"}],
            "history": [
                {"created_by": "ADD rootfs.tar /", "layer": 0, "size": 1536},
                {"created_by": "ENV \x1b[31m" + "x" * 200, "layer": None, "size": None},
            ],
        }
    ],
}
ON_DISK = {
    "release": 3,
    "platform": "linux/amd64",
    "digest": DIGEST,
    "bytes": 3 * 1024**2,
    "shared": 1024**2,
    "unique": 2 * 1024**2,
    "last_used": "2026-01-02T03:04:05Z",
    "kept": "required",
    "why": "it is required on this node",
    "goes_next": False,
}
DISK = {
    "node": "n1",
    "node_id": "nod_1",
    "known": True,
    "used": 4 * 1024**2,
    "budget": 10 * 1024**2,
    "high": 9 * 1024**2,
    "low": 7 * 1024**2,
    "free": 1024**3,
    "leftover": 5,
    "images": [
        {
            "image": "web",
            "bytes": 4 * 1024**2,
            "shared": 1024**2,
            "unique": 3 * 1024**2,
            "releases": [ON_DISK, {**ON_DISK, "release": 2, "kept": None, "why": None, "goes_next": True}],
        }
    ],
    "waiting": [{"image": "data", "release": 1, "bytes": 8 * 1024**2}],
}
READINESS = {"node": "n1", "release": 3, "state": "ready", "attempt": 1, "bytes_done": 1, "bytes_total": 1}


PROMOTION = {
    "id": "prm_1",
    "image": "web",
    "channel": "stable",
    "release": 3,
    "before": 2,
    "nodes": 2,
    "why": "",
    "deadline": "2026-01-02T03:04:05Z",
    "created_at": "2026-01-02T03:04:05Z",
    "outcome": None,
    "failure": None,
    "progress": {"ready": 1, "needed": 2, "nodes": []},
}


@pytest.fixture
def catalog() -> Table:
    images = "/core/v1/sandbox/images"
    deployment = {
        "generation": 2,
        "default_image": "web",
        "default_platform": "linux/amd64",
        "pools": [
            {"name": "local", "provider": "oci", "platform": "linux/amd64", "size": {"cpus": 1, "memory": 1 << 30}}
        ],
    }
    return {
        "POST /core/v1/sandbox/what-if": Answer(body={"changes": []}),
        f"GET {images}": page(IMAGE),
        f"GET {images}/web": Answer(body=IMAGE),
        f"GET {images}/web/releases/3": Answer(body=RELEASE),
        f"GET {images}/web/readiness": page(READINESS),
        "GET /core/v1/sandbox/disk": page(DISK),
        f"PUT {images}/web/channels/stable": Answer(
            body={"image": "web", "name": "stable", "release": 3, "revision": 2}
        ),
        f"POST {images}/web/promotions": Answer(201, PROMOTION),
        f"GET {images}/web/promotions": page(PROMOTION),
        f"GET {images}/web/promotions/prm_1": Answer(body={**PROMOTION, "outcome": "settled", "progress": None}),
        f"POST {images}/web/promotions/prm_1/abort": Answer(body={**PROMOTION, "outcome": "aborted"}),
        f"POST {images}/web/channels/stable/rollback": Answer(body={"release": 2, "revision": 3, "previous": 3}),
        f"GET {images}/web/channels/stable/history": page(
            {
                "revision": 2,
                "before": 2,
                "release": 3,
                "at": "2026-01-02T03:04:05Z",
                "principal": "ann",
                "why": "faster",
            }
        ),
        f"POST {images}/web/evict": Answer(
            body={"evicted": [], "kept": [{"node": "n1", "release": 3, "why": "in use"}]}
        ),
        f"POST {images}/web/verify": Answer(
            body={"image": "web", "seen": "whole", "blobs": [{"seen": "whole"}], "nodes": [{"seen": "whole"}]}
        ),
        f"POST {images}/web/preload": Answer(202, {"items": [], "next": None}),
        f"PATCH {images}/web": Answer(body=IMAGE),
        f"POST {images}": refusal(409, "name_taken", "conflict_error"),
        f"POST {images}/web/releases": Answer(201, {**RELEASE, "state": "pending"}),
        "POST /core/v1/sandbox/uploads": Answer(201, {"id": "upl_1"}),
        "GET /core/v1/sandbox/deployment": Answer(body=deployment),
    }


@pytest.mark.parametrize(
    "command, shows",
    [
        ("images ls", "web (default)"),
        ("images inspect web", DIGEST),
        ("images inspect web:3", DIGEST),
        ("images inspect web:3", f"1.5 KiB  {DIGEST}  ADD rootfs.tar /"),
        ("images inspect web:3", f"-{'':8}-{'':72}ENV \\x1b[31mxxx"),
        ("images promote web:3", "web:stable"),
        ("images promote web:3 --gate all", "will become"),
        ("images promote web:3 --gate 2 --deadline 9 --wait", "is now"),
        ("images promotions web", "1/2"),
        ("images abort web", "does not become"),
        ("images rollback web", "web:2"),
        ("images history web", "faster"),
        ("images evict web", "in use"),
        ("images preload web", "web"),
        ("images verify web", "whole"),
        ("images verify", "1 of 1"),
        ("images retire web", "web"),
        ("images df", "no: it is required on this node"),
        ("images readiness", "ready"),
        ("images readiness web", "ready"),
        ("deployment show", "local"),
    ],
)
def test_each_command_speaks_to_people_and_to_programs(
    environ: Point, sandbay: Sandbay, catalog: Table, command: str, shows: str
) -> None:
    with scripted(answering(catalog)) as server:
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


def test_register_waits_until_it_is_active(
    environ: Point, sandbay: Sandbay, catalog: Table, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "layout/blobs/sha256").mkdir(parents=True)
    (tmp_path / "layout/oci-layout").write_text("{}")
    (tmp_path / "layout/index.json").write_text("{}")
    with scripted(answering(catalog)) as server:
        environ(server.url)
        layout = f"{tmp_path}/layout:1.0"
        tool = ("--tool", "node=node --version", "--tool", "sh=sh -c 'x=1; echo $x'")
        said = sandbay(
            "images", "register", "web", "--from-layout", layout, "--promote", "stable", *tool, "--wait", "-q"
        )
        assert (said.code, said.out, said.err) == (0, "web:3\n", "")
        register = next(asked for asked in server.asked if asked.what.endswith("/releases"))
        assert register.json == {
            "source": {"upload": "upl_1", "tag": "1.0"},
            "promote": "stable",
            "tools": {"node": "node --version", "sh": "sh -c 'x=1; echo $x'"},
        }
        wrong = sandbay("images", "register", "web", "--from-layout", str(tmp_path), "--json")
        assert (wrong.code, wrong.refusal["code"]) == (125, "malformed_layout")


def test_progress_leaves_the_streams_to_programs_with_json(
    environ: Point, sandbay: Sandbay, catalog: Table, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbay.cli.progress._QUIET_FOR", -1.0)
    (tmp_path / "blobs/sha256").mkdir(parents=True)
    (tmp_path / "oci-layout").write_text("{}")
    (tmp_path / "index.json").write_text("{}")
    command = ("images", "register", "web", "--from-layout", str(tmp_path), "--wait")
    with scripted(answering(catalog)) as server:
        environ(server.url)
        assert sandbay(*command).err.startswith("web: ")
        assert sandbay(*command, "--json").err == ""


def test_register_sends_an_archive_as_it_is(
    environ: Point, sandbay: Sandbay, catalog: Table, tmp_path: pathlib.Path
) -> None:
    archive = tmp_path / "web.tar"
    archive.write_bytes(b"whatever it is")
    with scripted(answering(catalog)) as server:
        environ(server.url)
        said = sandbay("images", "register", "web", "--from-archive", f"{archive}:fx/a:1", "-q")
        assert (said.code, said.out, said.err) == (0, "web:3\n", "")
        upload, register = (a for a in server.asked if a.path.endswith(("/uploads", "/releases")))
        assert upload.body == b"whatever it is"
        assert register.json == {"source": {"upload": "upl_1", "tag": "fx/a:1"}}
        wrong = sandbay("images", "register", "web", "--from-archive", str(tmp_path), "--json")
        assert (wrong.code, wrong.refusal["code"]) == (125, "malformed_archive")


def test_register_by_artifacts_alone_or_beside_a_source(environ: Point, sandbay: Sandbay, catalog: Table) -> None:
    with scripted(answering(catalog)) as server:
        environ(server.url)
        by = ("--artifact", "template=web:1=2", "--artifact", "hash=00", "--provider", "remote")
        said = sandbay("images", "register", "web", *by, "-q")
        assert (said.code, said.out, said.err) == (0, "web:3\n", "")
        said = sandbay("images", "register", "web", "--from-registry", "reg.example/web:1", *by[:2], "-q")
        assert said.code == 0
        alone, beside = (
            asked.json for asked in server.asked if asked.what == "POST /core/v1/sandbox/images/web/releases"
        )
        assert alone == {"artifacts": {"template": "web:1=2", "hash": "00"}, "providers": ["remote"]}
        assert beside == {"source": {"registry": "reg.example/web:1"}, "artifacts": {"template": "web:1=2"}}
        for wrong in (["x"], ["=x"], ["x="], ["x=1", "x=2"]):
            options = [word for text in wrong for word in ("--artifact", text)]
            assert sandbay("images", "register", "web", *options).code == 2
        assert sandbay("images", "register", "web").code == 2


def test_starting_is_cheap() -> None:
    program = (
        "import sys; from sandbay.cli.main import run; run(arguments=['--help']);"
        "print([name for name in ('httpx', 'rich', 'click', 'pydantic', 'sandbay.sdk') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_loads_no_more_than_it_needs(tmp_path: pathlib.Path) -> None:
    program = (
        "import sys; from sandbay.cli.main import run; run(arguments=['run', 'web', '--', 'true']);"
        "print([name for name in ('rich', 'click', 'pydantic', 'pygments', 'httpx._main') if name in sys.modules])"
    )
    with scripted(answering(running(ended(0)))) as server:
        env = {**os.environ, "SANDBAY_URL": server.url, "SANDBAY_API_KEY": "k", "HOME": str(tmp_path)}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["create", "exec"])
def test_being_told_to_stop_removes_the_session(tmp_path: pathlib.Path, number: signal.Signals, moment: str) -> None:
    reached, made = threading.Event(), threading.Event()

    def output() -> Iterator[bytes]:
        yield b"\1started\n"
        reached.set()
        while True:
            yield b"\2."
            threading.Event().wait(0.02)

    def script(asked: Asked) -> Answer:
        if asked.what == CREATE:
            if moment == "create" and not made.is_set():
                made.set()
                reached.set()
                threading.Event().wait(1)  # the answer does not come in time
            return Answer(201, session())
        return Answer(messages=output()) if asked.what == EXEC else Answer(202, session("ending"))

    with scripted(script) as server:
        env = {**os.environ, "SANDBAY_URL": server.url, "SANDBAY_API_KEY": "k", "HOME": str(tmp_path)}
        # A test run in the background hands down ignored signals, which a program is right to leave ignored.
        command = ["env", "--default-signal", sys.executable, "-c", MAIN, "run", "web", "--", "sleep"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
            assert reached.wait(30)
            process.send_signal(number)
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
        assert process.returncode == 128 + number
        assert b"Traceback" not in err
        assert server.whats()[-1] == DELETE
        assert (server.whats().count(CREATE), EXEC in server.whats()) == (
            (2, False) if moment == "create" else (1, True)
        )
        assert len({asked.headers["idempotency-key"] for asked in server.asked if asked.what == CREATE}) == 1


def test_standard_input_goes_along_only_when_asked(tmp_path: pathlib.Path) -> None:
    with scripted(answering(running(ended(0)))) as server:
        env = {**os.environ, "SANDBAY_URL": server.url, "SANDBAY_API_KEY": "k", "HOME": str(tmp_path)}
        for options in ([], ["-i"]):
            command = [sys.executable, "-c", MAIN, "run", *options, "web", "--", "cat"]
            subprocess.run(command, input=b"\0in", check=True, env=env)
        stdins = [asked.json.get("stdin") for asked in server.asked if asked.what == EXEC]
        assert stdins == [None, "AGlu"]


def test_output_that_nobody_reads_ends_it_quietly(tmp_path: pathlib.Path) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"\1" + b"y\n" * 10_000

    with scripted(lambda asked: {**running(), EXEC: Answer(messages=endless())}[asked.what]) as server:
        env = {**os.environ, "SANDBAY_URL": server.url, "SANDBAY_API_KEY": "k", "HOME": str(tmp_path)}
        command = [sys.executable, "-c", MAIN, "run", "web", "--", "yes"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
            assert process.stdout is not None
            process.stdout.read(10)
            process.stdout.close()
            assert process.stderr is not None
            assert process.stderr.read() == b""
        assert server.whats()[-1] == DELETE


def test_df_shows_what_is_shared_what_goes_and_what_waits(environ: Point, sandbay: Sandbay) -> None:
    away = {**DISK, "node": "n2", "known": False, "images": [], "waiting": []}
    with scripted(answering({"GET /core/v1/sandbox/disk": page(DISK, away)})) as server:
        environ(server.url)
        lines = [" ".join(line.split()) for line in sandbay("images", "df").out.splitlines()]
        assert lines == [
            "n1: 4.0 MiB of 10.0 MiB, 1.0 GiB free on the disk.",
            "Above 9.0 MiB the longest unused go, until 7.0 MiB are left.",
            "RELEASE BYTES SHARED UNIQUE LAST USED MAY GO",
            "web 4.0 MiB 1.0 MiB 3.0 MiB",
            "web:3 3.0 MiB 1.0 MiB 2.0 MiB 2026-01-02 03:04:05 no: it is required on this node",
            "web:2 3.0 MiB 1.0 MiB 2.0 MiB 2026-01-02 03:04:05 next",
            "5 B are no release's: layers of a prepare that has not ended.",
            "data:1 waits for room: it will take about 8.0 MiB",
            "n2: does not tell what its images take; it is away, or a daemon keeps them",
        ]
        assert sandbay("images", "df", "-q").out.split() == [str(2 * 1024**2), "web:2", "n1"]
        assert json.loads(sandbay("images", "df", "--json").out) == {"items": [DISK, away]}


def test_who_would_lose_what_is_listed(environ: Point, sandbay: Sandbay) -> None:
    unmet = [{"tool": "node", "wanted": ">=20", "found": "18.2"}, {"tool": "git", "wanted": "any", "found": None}]
    one = {"kind": "template", "name": "work", "project": "growth", "has": "web:1", "unmet": unmet}
    other = {"kind": "project", "name": "growth", "project": "growth", "has": "web:1", "reason": "image_unsupported"}
    answer = refusal(400, "requirements_unmet", "invalid_request_error", details={"lost": [one, other], "count": 2})
    table = {
        "POST /core/v1/sandbox/what-if": Answer(body={"changes": []}),
        "PUT /core/v1/sandbox/images/web/channels/stable": answer,
    }
    with scripted(answering(table)) as server:
        environ(server.url)
        said = sandbay("images", "promote", "web:3")
    assert said.code == 125
    assert "template work of growth has web:1: node>=20 (18.2), git (none)" in said.err
    assert "project growth has web:1: image_unsupported" in said.err
