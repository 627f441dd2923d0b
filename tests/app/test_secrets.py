"""Secrets of projects: in the environment of programs, as they are when those start, and nowhere else."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from sandbay.app.admit_session import Asked, admit_session
from sandbay.app.secrets import drop_secret, list_secrets, put_secret
from sandbay.app.sessions import run_command
from sandbay.app.templates import create_template
from sandbay.domain.command import Command
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.session import SessionState
from sandbay.ports.provider import Stream
from sandbay.ports.records import Page, SessionRecord
from sandbay.ports.store import Audit, SessionEvents, Sessions
from tests.app.test_crash_anywhere import _active
from tests.app.test_setup import now, project, settled, sh
from tests.app.world import Running, eventually

VALUE, NEXT = "hush-hush-1", "hush-hush-2"


@pytest.fixture
def begin(running: Running) -> Callable[..., SessionRecord]:
    """A Session, when it has come to something."""
    running.register("web", "web")
    eventually(lambda: _active(running))
    put_secret(running.core, running.actor, project(running), "gh", VALUE)

    def one(**asked: object) -> SessionRecord:
        wish = Asked("web", wait_seconds=60, **asked)  # type: ignore[arg-type] # as the caller says
        return settled(running, admit_session(running.core, running.actor, wish).record)

    return one


def said(running: Running, record: SessionRecord, variable: str, env: Mapping[str, str] = MappingProxyType({})) -> str:
    out: list[bytes] = []

    def keep(_: Stream, data: bytes) -> None:
        out.append(data)

    command = Command(argv=("env",), env=env)
    assert run_command(running.core, now(running, record), command, emit=keep).code == 0
    return dict(line.split("=", 1) for line in b"".join(out).decode().splitlines())[variable]


def test_a_variable_holds_it_as_it_is_when_a_program_starts(
    running: Running, begin: Callable[..., SessionRecord]
) -> None:
    record = begin(secret_env={"TOKEN": "gh"}, env={"PLAIN": "p"})
    assert (said(running, record, "TOKEN"), said(running, record, "PLAIN")) == (VALUE, "p")
    assert said(running, record, "TOKEN", {"TOKEN": "own"}) == "own", "a command's own word goes before"
    put_secret(running.core, running.actor, project(running), "gh", NEXT)
    assert said(running, record, "TOKEN") == NEXT


def test_one_that_is_not_there_is_refused_by_name(running: Running, begin: Callable[..., SessionRecord]) -> None:
    with pytest.raises(RefusedError) as caught:
        begin(secret_env={"TOKEN": "none"})
    refusal = caught.value.refusal
    assert (refusal.reason, refusal.param, refusal.details) == (
        *(Reason.SECRET_UNKNOWN, "env"),
        {"variable": "TOKEN", "secret": "none"},
    )
    with pytest.raises(RefusedError) as caught:
        create_template(running.core, running.actor, project(running), "work", {"secret_env": {"TOKEN": "none"}})
    assert caught.value.refusal.reason is Reason.SECRET_UNKNOWN
    record = begin(secret_env={"TOKEN": "gh"})
    drop_secret(running.core, running.actor, project(running), "gh")
    with pytest.raises(RefusedError) as caught:
        said(running, record, "TOKEN")
    assert caught.value.refusal.reason is Reason.SECRET_UNKNOWN, "a program without it is not what was asked for"
    assert now(running, record).session.state is SessionState.RUNNING
    put_secret(running.core, running.actor, project(running), "gh", NEXT)
    assert said(running, record, "TOKEN") == NEXT


def test_setup_commands_have_it_and_the_template_only_its_name(
    running: Running, begin: Callable[..., SessionRecord]
) -> None:
    told = {"secret_env": {"TOKEN": "gh"}, "setup_commands": sh("true")}
    kept = create_template(running.core, running.actor, project(running), "work", told).template
    first = begin(template="work")
    assert first.session.state is SessionState.RUNNING
    put_secret(running.core, running.actor, project(running), "gh", NEXT)
    second = begin(template="work")
    assert first.session.template_digest == second.session.template_digest, "no value is in it"
    assert VALUE not in kept.content.document.decode()


def test_one_that_is_deleted_before_a_setup_fails_it_by_name(
    running: Running, begin: Callable[..., SessionRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"secret_env": {"TOKEN": "gh"}, "setup_commands": sh("true")}
    create_template(running.core, running.actor, project(running), "work", told)
    monkeypatch.setattr("sandbay.app.admit_session.refuse_unknown", lambda *_: None)
    drop_secret(running.core, running.actor, project(running), "gh")
    failed = begin(template="work").session
    assert (failed.state, failed.fault and failed.fault.reason) == (SessionState.FAILED, Reason.SECRET_UNKNOWN)


def test_its_value_is_in_no_row_and_on_no_disk(
    running: Running, begin: Callable[..., SessionRecord], capfd: pytest.CaptureFixture[str]
) -> None:
    record = begin(secret_env={"TOKEN": "gh"})
    assert said(running, record, "TOKEN") == VALUE
    read = running.core.store.read
    rows: Sequence[object] = [
        *read(Sessions()),
        *read(SessionEvents(record.session.id)),
        *read(Audit(None, Page(limit=1000))),
        *list_secrets(running.core, project(running)),
    ]
    assert rows
    assert VALUE not in repr(rows)
    orders = [it.order for it in running.world.node.sandboxes.values()]
    assert orders
    assert VALUE not in repr(orders)
    files = [path for path in running.world.root.rglob("*") if path.is_file()]
    assert Path(running.world.root / "db") in files
    assert [path for path in files if VALUE.encode() in path.read_bytes()] == []
    assert VALUE not in "".join(capfd.readouterr())
