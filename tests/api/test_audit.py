"""The audit: every attempt has its row, every Session its account, an export holds, and no secret is anywhere."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog.testing

from sandbay.api.attempts import ACTIONS, NO_CHANGE
from sandbay.api.contract import openapi
from sandbay.app.core import Settings
from sandbay.sdk.chain import verify_audit
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Served, answered, refused
from tests.api.test_access import _filled
from tests.app.world import eventually

AUDIT = f"{CORE}/audit"
UPLOAD_BYTES = 100_000
OPERATIONS = {
    operation["operationId"]: (method.upper(), path)
    for path, operations in openapi()["paths"].items()
    for method, operation in operations.items()
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    it = Served(tmp_path_factory.mktemp("audited"), Settings(upload_bytes=UPLOAD_BYTES))
    try:
        it.image("web")
        yield it
    finally:
        it.close()


def newest(served: Served, count: int = 1) -> Any:
    return answered(served.admin.get(AUDIT, params={"limit": count}))["items"]


def test_every_operation_that_may_change_something_is_an_action() -> None:
    changing = {name for name, (method, _) in OPERATIONS.items() if method != "GET"}
    assert set(ACTIONS) | NO_CHANGE == changing
    assert not set(ACTIONS) & NO_CHANGE


@pytest.mark.parametrize("operation", sorted(ACTIONS))
def test_every_refused_attempt_has_one_row_with_who_and_what(house: Served, operation: str) -> None:
    """Refused for its body, or for what it names: who does not even know what there is has tried all the same."""
    method, path = OPERATIONS[operation]
    names = dict.fromkeys(("image", "project", "key", "session", "template", "publish", "promotion"), "nope")
    client = house.admin if path.startswith(CORE) else house.project
    request_id = f"attempt-{operation}"
    headers = {"X-Request-Id": request_id, "Content-Type": "application/json"}
    filled = _filled(path, **names, registry="%00")
    body = bytes(2 * UPLOAD_BYTES) if operation == "post_upload" else b'{"nope": 1}'
    before = len(newest(house, 500))
    response = client.request(method, filled, headers=headers, content=body)
    assert response.status_code >= 400, response.text
    after = newest(house, 500)
    (row,) = after[: len(after) - before]
    assert (row["action"], row["outcome"]) == (ACTIONS[operation], response.json()["error"]["code"])
    assert row["request_id"] == request_id
    assert row["principal"] in ("local administrator", "local user")
    assert row["subject"]


def test_questions_and_work_inside_a_sandbox_are_no_attempts(house: Served) -> None:
    before = newest(house, 500)
    refused(house.project.post(f"{V1}/explain", json={"nope": 1}), 400, "invalid_body", "nope")
    refused(house.project.post(f"{SESSIONS}/ses_00000000000000000000/exec", json={"argv": ["a"]}), 404, "not_found")
    assert newest(house, 500) == before


def test_a_registration_that_is_followed_leaves_its_row_too(house: Served) -> None:
    """However late it is refused, and as whatever the refusal comes."""
    upload = house.upload("broken")
    body = {"source": {"upload": upload, "tag": "no-such-tag"}}
    headers = {"Accept": "text/event-stream"}
    response = house.admin.post(f"{IMAGES}/web/releases", json=body, headers=headers)
    assert "manifest_missing" in response.text or response.status_code >= 400
    (row,) = newest(house)
    assert (row["action"], row["principal"]) == ("release.register", "local administrator")
    assert row["outcome"] != "done"
    assert row["outcome"] in response.text


def test_a_known_key_at_the_wrong_door_is_written_down_and_an_unknown_one_is_not(house: Served) -> None:
    made = answered(house.admin.post(f"{CORE}/projects/default/keys", json={"name": "k", "principal": "eve"}), 201)
    theirs = house.client(made["secret"])
    refused(theirs.get(IMAGES), 403, "forbidden")
    (row,) = newest(house)
    assert (row["action"], row["subject"], row["principal"]) == ("access", made["id"], "eve")
    assert row["outcome"] == "forbidden"
    assert house.admin.delete(f"{CORE}/projects/default/keys/{made['id']}").status_code == 204
    refused(theirs.get(f"{V1}/project"), 401, "invalid_api_key")
    (row,) = newest(house)
    assert (row["outcome"], row["principal"]) == ("invalid_api_key", "eve")
    before = newest(house)
    refused(house.nobody.get(f"{V1}/project", headers={"Authorization": "Bearer sbp_x"}), 401, "invalid_api_key")
    assert newest(house) == before


def test_a_session_is_accounted_for_after_its_end_and_whatever_moved(served: Served) -> None:
    served.image("usual")
    served.image("web", "web-1")
    session = served.session(runtime_image_id="web:stable")
    second = served.image("web", "web-2")["number"]
    answered(served.admin.put(f"{IMAGES}/web/channels/stable", json={"release": second}))
    answered(served.project.delete(f"{SESSIONS}/{session['id']}"), 202)
    path = f"{AUDIT}/sessions/{session['id']}"
    eventually(lambda: answered(served.admin.get(path))["status"] == "ended")
    answered(served.admin.patch(f"{IMAGES}/web/releases/1", json={"state": "retired"}))
    account = answered(served.admin.get(path))
    assert account["image"] == session["image"]
    assert (account["image"]["release"], account["image"]["reference"]) == (1, "web:stable")
    assert account["image"]["decided_by"] == {"level": "session", "subject": None}
    assert [it["outcome"] for it in account["trail"] if it["level"] == "session"] == ["chosen"]
    assert account["ended_at"] is not None
    assert [it["action"] for it in account["entries"]][:1] == ["session.create"]
    assert "session.delete" in [it["action"] for it in account["entries"]]
    refused(served.admin.get(f"{AUDIT}/sessions/ses_00000000000000000000"), 404, "not_found")


def test_an_export_is_all_of_it_and_holds(served: Served) -> None:
    served.image("web")
    for n in range(12):
        refused(served.admin.post(IMAGES, json={"name": "web", "labels": {"n": str(n)}}), 409, "name_taken", "name")
    response = served.admin.get(f"{AUDIT}/export")
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = response.content.splitlines(keepends=True)
    told = newest(served, 500)
    assert verify_audit(lines).entries == len(told) > 12
    exported = [json.loads(line)["entry"] for line in lines[1:-1]]
    assert [it["id"] for it in reversed(exported)] == [it["id"] for it in told]
    assert set(exported[0]) == set(told[0])
    answered(served.admin.post(IMAGES, json={"name": "more"}), 201)
    later = served.admin.get(f"{AUDIT}/export").content.splitlines(keepends=True)
    assert later[: len(lines) - 1] == lines[:-1]


def test_a_long_audit_is_exported_page_by_page(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.image("web")
    whole = served.admin.get(f"{AUDIT}/export").content
    read = served.core.store.read
    asked: list[int] = []

    def in_small_pages(query: Any) -> Any:
        if type(query).__name__ != "AuditInOrder":
            return read(query)
        asked.append(query.after)
        return read(type(query)(query.after, 2))

    monkeypatch.setattr(served.core.store, "read", in_small_pages)
    assert served.admin.get(f"{AUDIT}/export").content == whole
    assert len(asked) > 2


SECRET = "hush-5c0f1d-hush"  # noqa: S105 - planted to be looked for


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as told, caplog.at_level(logging.DEBUG):
        yield told


def test_no_secret_is_in_logs_audit_database_or_answers(
    served: Served, logged: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Keys, and credentials of registries, given rightly and wrongly; what is shown once is shown once."""
    served.image("web")
    made = answered(served.admin.post(f"{CORE}/projects/default/keys", json={"name": "k"}), 201)
    secret = f"{CORE}/sandbox/registry-secrets/reg.example"
    answered(served.admin.put(secret, json={"username": "ann", "password": SECRET}))
    attempts: list[httpx.Response] = [
        served.admin.put(secret, json={"username": "ann", "password": SECRET, "more": SECRET}),
        served.admin.put(secret, json={"username": "a\nb", "password": SECRET}),
        served.admin.put(f"{CORE}/sandbox/registry-secrets/a%5Cb", json={"username": "ann", "password": SECRET}),
        served.admin.post(f"{CORE}/projects/nope/keys", json={"name": "k"}),
        served.client(made["secret"]).get(IMAGES),
        served.nobody.get(IMAGES, headers={"Authorization": f"Bearer {SECRET}"}),
        served.nobody.get(IMAGES, headers={"Authorization": f"Basic {SECRET}"}),
        served.client(made["secret"] + "x").get(f"{V1}/project"),
    ]
    assert all(it.status_code >= 400 for it in attempts)
    planted = [SECRET, served.admin_key, served.project_key, made["secret"]]
    places = {
        "answers": "".join(it.text for it in [*attempts, *everything_that_can_be_read(served)]),
        "audit": served.admin.get(f"{AUDIT}/export").text,
        "logs": repr(logged) + caplog.text,
        "database": stored(served.root / "world"),
    }
    assert "registry_secret.put" in places["audit"]
    assert "reg.example" in places["database"]
    assert [(name, it[:8]) for name, text in places.items() for it in planted if it in text] == []


def everything_that_can_be_read(served: Served) -> Iterator[httpx.Response]:
    """Every GET without a stream, with what there is in the path."""
    for method, path in OPERATIONS.values():
        if method == "GET" and "events" not in path and not path.endswith(("/log", "/readiness")):
            client = served.admin if path.startswith(CORE) else served.project
            yield client.get(_filled(path, project="default"))


def stored(world: Path) -> str:
    """All that the installation keeps; the vault's own key is no secret that anybody gave it."""
    files = [it for it in world.rglob("*") if it.is_file() and it.suffix != ".log"]
    return "".join(it.read_bytes().decode(errors="replace") for it in files)
