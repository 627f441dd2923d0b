"""Sessions through the API: admitted on exactly one image or refused by name, waited for, ended, never made twice."""

import threading
from pathlib import Path

import httpx
import pytest
import structlog.testing

from sandbay.domain.declaration import Network
from sandbay.domain.reasons import Reason
from tests.api.served import CORE, SESSIONS, V1, Json, Served, answered, refused
from tests.app.world import SLOTS, eventually
from tests.fakes.memory_provider import NETWORKED


def test_a_session_from_create_to_end(served: Served) -> None:
    release = served.image("web")
    session = served.session(runtime_image_id="web", env={"A": "1"}, metadata={"job": "7"}, resources={"pids": 10})
    image = session["image"]
    assert (image["name"], image["release"], image["release_id"]) == ("web", 1, release["id"])
    assert image["digest"] == release["variants"][0]["digest"]
    assert image["decided_by"] == {"level": "session", "subject": None}
    assert session["trail"][0] == {
        "level": "session",
        "outcome": "chosen",
        "subject": None,
        "said": "web",
        "reason": None,
        "enforced": False,
    }
    assert (session["metadata"], session["network"], session["reason"]) == ({"job": "7"}, "disabled", None)
    assert session["resources"] == {"cpus": None, "memory": None, "pids": 10}
    assert session["size"]["pids"] == 256
    seen = answered(served.admin.get(f"{CORE}/sandbox/sessions/{session['id']}"))
    node = answered(served.admin.get(f"{CORE}/sandbox/nodes"))["items"][0]
    assert (seen["node"], seen["runtime"], seen["principal"]) == (node["id"], "memory", "local user")
    assert seen["host_pid"] > 0
    path = f"{SESSIONS}/{session['id']}"
    assert answered(served.project.delete(path), 202)["status"] == "ending"
    eventually(lambda: answered(served.project.get(path))["status"] == "ended")
    ended = answered(served.project.delete(path), 200)
    assert ended["status"] == "ended"
    assert ended["ended_at"] is not None
    assert answered(served.admin.get(f"{CORE}/sandbox/nodes"))["items"][0]["active"] == 0


REFUSED: list[tuple[Json, int, str, str | None]] = [
    ({"runtime_image_id": "nope"}, 400, "image_unknown", "runtime_image_id"),
    ({"runtime_image_id": "web:nope"}, 400, "channel_unknown", "runtime_image_id"),
    ({"runtime_image_id": "web:9"}, 400, "release_unknown", "runtime_image_id"),
    ({"runtime_image_id": "rel_00000000000000000000"}, 400, "release_unknown", "runtime_image_id"),
    ({"runtime_image_id": "Web"}, 400, "invalid_reference", "runtime_image_id"),
    ({"runtime_image_id": ""}, 400, "invalid_reference", "runtime_image_id"),
    ({"runtime_image_id": "x" * 600}, 400, "invalid_reference", "runtime_image_id"),
    ({"platform": "linux/s390x"}, 400, "image_unsupported", None),
    ({"runtime_image_id": "web", "platform": "linux/s390x"}, 400, "image_unsupported", "runtime_image_id"),
    ({"network": "enabled"}, 422, "network_unsupported", "network"),
    ({"resources": {"cpus": 64}}, 422, "resource_unsupported", "resources"),
]


def test_a_platform_that_is_none(shared: Served) -> None:
    refused(shared.project.post(SESSIONS, json={"platform": "amd64"}), 400, "invalid_body", "platform")


@pytest.mark.parametrize("body, status, code, param", REFUSED)
def test_refused_by_name_and_nothing_is_left(
    shared: Served, body: Json, status: int, code: str, param: str | None
) -> None:
    before = answered(shared.project.get(SESSIONS))
    for wait in (0, 5):
        refused(shared.project.post(SESSIONS, json={"wait_seconds": wait, **body}), status, code, param)
    assert answered(shared.project.get(SESSIONS)) == before


@pytest.mark.parametrize("body, code", [(body, code) for body, status, code, _ in REFUSED if status == 400])
def test_explain_says_what_admission_says(shared: Served, body: Json, code: str) -> None:
    told = answered(shared.project.post(f"{V1}/explain", json=body))
    assert (told["refusal"]["code"], told["resolved"], told["placement"]) == (code, None, None)
    assert "refused" in [step["outcome"] for step in told["trail"]]


@pytest.mark.produces(Reason.NETWORK_UNSUPPORTED, Reason.RESOURCE_UNSUPPORTED, Reason.IMAGE_UNSUPPORTED)
def test_what_no_pool_gives(shared: Served) -> None:
    for body, status, code, param in REFUSED[-4:]:
        refused(shared.project.post(SESSIONS, json=body), status, code, param)


def test_a_network_that_the_host_of_no_node_enforces(tmp_path: Path) -> None:
    """The provider declares it; what the node's host lacks decides, before there is a Session."""
    served = Served(tmp_path, declaration=NETWORKED)
    try:
        served.image("web")
        assert served.session(network="enabled")["network"] == "enabled"
        served.world.node.lacks = frozenset({Network.ENABLED})
        served.running.agent._disagree()  # it says hello again
        nodes = f"{CORE}/sandbox/nodes"
        eventually(lambda: answered(served.admin.get(nodes))["items"][0]["networks"] == ["disabled"])
        before = answered(served.project.get(SESSIONS))
        for wait in (0, 5):
            asked = {"network": "enabled", "wait_seconds": wait}
            error = refused(served.project.post(SESSIONS, json=asked), 422, "network_unsupported", "network")
            assert error["details"] == {"network": ["enabled"], "offered": ["disabled"]}
        assert answered(served.project.get(SESSIONS)) == before
        assert served.session()["network"] == "disabled"
        served.world.node.lacks = frozenset()
        served.running.agent._disagree()
        eventually(lambda: answered(served.admin.get(nodes))["items"][0]["networks"] == ["disabled", "enabled"])
        error = refused(
            served.project.post(SESSIONS, json={"network": "restricted"}), 422, "network_unsupported", "network"
        )
        assert error["details"]["offered"] == ["disabled", "enabled"]
    finally:
        served.close()


@pytest.mark.produces(Reason.NO_DEFAULT_IMAGE)
def test_nothing_names_an_image(served: Served) -> None:
    refused(served.project.post(SESSIONS, json={}), 409, "no_default_image")
    error = refused(
        served.project.post(SESSIONS, json={"runtime_image_id": "@default"}),
        409,
        "no_default_image",
        "runtime_image_id",
    )
    assert error["details"]["reference"] == "@default"


@pytest.mark.produces(Reason.IMAGE_NOT_READY)
def test_not_ready_is_never_another_image(served: Served) -> None:
    served.image("web")
    served.image("other")
    answered(served.admin.post(f"{CORE}/sandbox/images/other/evict"))
    with served.world.node.knobs.holding_prepare():
        response = served.project.post(SESSIONS, json={"runtime_image_id": "other"})
        error = refused(response, 503, "image_not_ready")
        assert response.headers["retry-after"] == str(error["details"]["retry_after"])
        explained = answered(served.project.post(f"{V1}/explain", json={"runtime_image_id": "other"}))
        assert explained["resolved"]["name"] == "other"
        assert explained["placement"]["reason"] == "image_not_ready"
        waiting = answered(served.project.post(SESSIONS, json={"runtime_image_id": "other", "wait_seconds": 60}), 201)
        assert (waiting["status"], waiting["waiting_for"]) == ("waiting", "image")
        assert waiting["wait_until"] is not None
    session = served.until_running(waiting)
    assert (session["status"], session["image"]["name"]) == ("running", "other")


@pytest.mark.produces(Reason.NO_CAPACITY, Reason.WAIT_EXPIRED, Reason.POOL_PAUSED)
def test_full_and_paused_pass(served: Served) -> None:
    served.image("web")
    for _ in range(SLOTS):
        served.session()
    response = served.project.post(SESSIONS, json={})
    refused(response, 503, "no_capacity")
    assert int(response.headers["retry-after"]) > 0
    waiting = answered(served.project.post(SESSIONS, json={"wait_seconds": 1}), 201)
    assert (waiting["status"], waiting["waiting_for"]) == ("waiting", "capacity")
    failed = answered(served.project.get(f"{SESSIONS}/{waiting['id']}", params={"wait": 30}))
    assert (failed["status"], failed["reason"]["code"]) == ("failed", "wait_expired")
    assert failed["reason"]["details"]["last"] == "no_capacity"
    answered(served.deploy(pools=[served.pool(admission="paused")]))
    refused(served.project.post(SESSIONS, json={}), 503, "pool_paused")


@pytest.mark.produces(Reason.NO_NODE_ONLINE)
def test_no_node(served: Served) -> None:
    served.image("web")
    answered(served.deploy(pools=[served.pool(node_selector={"gpu": "yes"})]))
    refused(served.project.post(SESSIONS, json={}), 503, "no_node_online")


@pytest.mark.produces(Reason.IMAGE_MISMATCH)
def test_another_image_that_boots_is_a_failed_session(served: Served) -> None:
    served.image("web")
    served.world.node.knobs.boots = {"image_manifest_digest": "sha256:" + "0" * 64}
    session = answered(served.project.post(SESSIONS, json={}), 201)
    assert (session["status"], session["reason"]["code"]) == ("failed", "image_mismatch")
    refused(served.project.post(f"{SESSIONS}/{session['id']}/exec", json={"argv": ["true"]}), 409, "already_ended")


@pytest.mark.produces(Reason.IDEMPOTENCY_CONFLICT)
def test_a_key_makes_one_session(served: Served) -> None:
    served.image("web")
    headers = {"Idempotency-Key": "one"}
    first = answered(served.project.post(SESSIONS, json={"metadata": {"a": "1"}}, headers=headers), 201)
    again = answered(served.project.post(SESSIONS, json={"metadata": {"a": "1"}}, headers=headers), 200)
    assert again == first
    response = served.project.post(SESSIONS, json={"metadata": {"a": "2"}}, headers=headers)
    error = refused(response, 409, "idempotency_conflict", "Idempotency-Key")
    assert error["details"] == {"session": first["id"]}
    other = served.new_project("other")
    assert answered(other.post(SESSIONS, json={}, headers=headers), 201)["id"] != first["id"]


def test_creates_at_once_with_one_key_make_one(served: Served) -> None:
    served.image("web")
    clients = [served.client(served.project_key) for _ in range(8)]
    answers: list[httpx.Response] = []

    def create(client: httpx.Client) -> None:
        answers.append(client.post(SESSIONS, json={}, headers={"Idempotency-Key": "k"}))

    threads = [threading.Thread(target=create, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(answered(served.project.get(SESSIONS))["items"]) == 1


def test_a_long_poll_answers_when_the_status_is_left(served: Served) -> None:
    served.image("web")
    session = served.session()
    path = f"{SESSIONS}/{session['id']}"
    assert answered(served.project.get(path, params={"wait": 30, "status": "waiting"}))["status"] == "running"
    answers: list[Json] = []
    client = served.client(served.project_key)
    poll = threading.Thread(
        target=lambda: answers.append(answered(client.get(path, params={"wait": 30, "status": "running"})))
    )
    poll.start()
    answered(served.project.delete(path), 202)
    poll.join()
    assert answers[0]["status"] in ("ending", "ended")


def test_those_who_wait_hold_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbay.api.calls.SHORT_CALLS", 2)
    served = Served(tmp_path)
    try:
        served.image("web")
        path = f"{SESSIONS}/{served.session()['id']}"
        poll = {"params": {"wait": 30, "status": "running"}}
        clients = [served.client(served.project_key) for _ in range(12)]
        polls = [threading.Thread(target=client.get, args=(path,), kwargs=poll) for client in clients]
        for thread in polls:
            thread.start()
        eventually(lambda: _waiting(served) >= len(polls))
        assert answered(served.nobody.get("/readyz")) == {"status": "ok"}
        assert answered(served.project.get(path))["status"] == "running"
        answered(served.project.delete(path), 202)
        for thread in polls:
            thread.join()
    finally:
        served.close()


def _waiting(served: Served) -> int:
    """How many threads wait for Core to change."""
    return len(served.core.changed._condition._waiters)  # type: ignore[attr-defined]


def test_a_poll_whose_client_is_gone_ends(served: Served) -> None:
    served.image("web")
    path = f"{SESSIONS}/{served.session()['id']}"
    client = served.client(served.project_key)
    before = _waiting(served)
    with pytest.raises(httpx.ReadTimeout):
        client.get(path, params={"wait": 30}, timeout=0.5)
    client.close()
    eventually(lambda: _waiting(served) <= before, within=20)


def test_sessions_come_in_pages_newest_first(served: Served) -> None:
    served.image("web")
    answered(served.deploy(pools=[served.pool(admission="paused")]))
    made = [answered(served.project.post(SESSIONS, json={"wait_seconds": 60}), 201)["id"] for _ in range(5)]
    first = answered(served.project.get(SESSIONS, params={"limit": 2}))
    assert [it["id"] for it in first["items"]] == made[:2:-1]
    second = answered(served.project.get(SESSIONS, params={"limit": 3, "after": first["next"]}))
    assert [it["id"] for it in second["items"]] == made[2::-1]
    assert second["next"] is None
    for session in made:
        answered(served.project.delete(f"{SESSIONS}/{session}"), 200)


@pytest.mark.produces(Reason.IMAGE_PREPARE_FAILED, Reason.DIGEST_MISMATCH)
def test_every_node_has_failed_for_good(served: Served) -> None:
    served.image("web")
    served.image("other")
    other = f"{CORE}/sandbox/images/other"
    answered(served.admin.post(f"{other}/evict"))
    eventually(lambda: answered(served.admin.get(f"{other}/readiness"))["items"][0]["state"] == "absent")
    served.world.node.knobs.fail_prepare(Reason.DIGEST_MISMATCH)
    answered(served.admin.post(f"{other}/preload"), 202)
    eventually(lambda: answered(served.admin.get(f"{other}/readiness"))["items"][0]["state"] == "failed")
    cell = answered(served.admin.get(f"{other}/readiness"))["items"][0]
    assert (cell["fault"]["code"], cell["retry_at"]) == ("digest_mismatch", None)
    error = refused(served.project.post(SESSIONS, json={"runtime_image_id": "other"}), 503, "image_prepare_failed")
    assert error["details"]["diagnostics"] == {"n1": "digest_mismatch"}


@pytest.mark.produces(Reason.NODE_LOST)
def test_a_sandbox_that_is_gone_is_a_failed_session(served: Served) -> None:
    served.image("web")
    session = served.session()
    served.world.node.sandboxes.clear()
    path = f"{SESSIONS}/{session['id']}"
    failed = answered(served.project.get(path, params={"wait": 30, "status": "running"}))
    assert (failed["status"], failed["reason"]["code"]) == ("failed", "node_lost")


@pytest.mark.produces(Reason.IMAGE_ABSENT_ON_NODE)
def test_an_image_that_is_gone_from_the_node_is_no_other_image(served: Served) -> None:
    served.image("web")
    served.image("other")
    held = served.world.node.held
    wanted = answered(served.admin.get(f"{CORE}/sandbox/images/other/releases/1"))["variants"][0]["digest"]
    for key in [key for key, variant in held.items() if variant.digest == wanted]:
        del held[key]
    session = answered(served.project.post(SESSIONS, json={"runtime_image_id": "other"}), 201)
    assert (session["status"], session["reason"]["code"]) == ("failed", "image_absent_on_node")


@pytest.mark.produces(Reason.START_FAILED)
def test_a_start_that_breaks_is_a_failed_session(served: Served) -> None:
    served.image("web")
    served.world.node.knobs.crash_at = "create:recorded"
    with structlog.testing.capture_logs():
        session = answered(served.project.post(SESSIONS, json={}), 201)
    assert (session["status"], session["reason"]["code"]) == ("failed", "start_failed")
