"""Every route × every wrong key: nobody gets past the door by another path, and other projects' things do not exist."""

from collections.abc import Iterator

import httpx
import pytest

from sandbay.api.contract import openapi
from sandbay.api.middleware import NAMESPACES
from sandbay.domain.project import KeyKind
from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Json, Served, answered, refused

OPEN = {"/healthz", "/readyz", "/metrics"}
OPERATIONS = [(method, path) for path, operations in openapi()["paths"].items() for method in operations]
GUARDED = [(method, path) for method, path in OPERATIONS if path not in OPEN]
IN_A_SESSION = [(method, path) for method, path in GUARDED if path.startswith(SESSIONS + "/{session}")]
STRANGE_PATHS = [CORE, V1, CORE + "/nope", V1 + "/nope", V1 + "/sessions/", V1 + "//sessions", CORE + "/../v1/sessions"]


def _filled(path: str, **names: str) -> str:
    defaults = {"image": "web", "number": "1", "channel": "stable", "project": "default", "key": "key_x"}
    defaults |= {"registry": "reg.example:5000", "publish": "pub_00000000000000000000"}
    defaults |= {"scope": "team:none", "subject": "scope:team:none", "agent": "coder", "secret": "gh"}
    defaults["promotion"] = "prm_00000000000000000000"
    defaults["template"] = "tmp_00000000000000000000"
    return path.format_map({"session": "ses_00000000000000000000", **defaults, **names})


def _kind(path: str) -> KeyKind:
    return next(kind for prefix, kind in NAMESPACES.items() if path.startswith(prefix))


def test_every_route_is_in_a_namespace_or_open() -> None:
    assert {path for _, path in OPERATIONS if not any(path.startswith(p + "/") for p in NAMESPACES)} == OPEN
    assert len(GUARDED) > 30


@pytest.mark.produces(Reason.INVALID_API_KEY)
@pytest.mark.parametrize("method, path", GUARDED)
def test_without_a_key_that_works_there_is_nothing(shared: Served, method: str, path: str) -> None:
    key = shared.admin_key if _kind(path) is KeyKind.ADMINISTRATOR else shared.project_key
    for header in (None, f"Bearer {key[:-1]}"):
        headers = {} if header is None else {"Authorization": header}
        response = shared.nobody.request(method, _filled(path), headers=headers, content=b"{not read")
        refused(response, 401, "invalid_api_key")
        assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("form", ["", "Bearer", "Bearer,", "Basic {key}", "Bearer {key}x", "{key}", "Bearer {key} x"])
def test_only_a_bearer_key_is_a_key(shared: Served, form: str) -> None:
    headers = {"Authorization": form.format(key=shared.project_key)}
    refused(shared.nobody.get(f"{V1}/project", headers=headers), 401, "invalid_api_key")
    answered(shared.nobody.get(f"{V1}/project", headers={"Authorization": f"bearer  {shared.project_key}"}))


@pytest.mark.produces(Reason.FORBIDDEN)
@pytest.mark.parametrize("method, path", GUARDED)
def test_the_other_kind_of_key_is_forbidden(shared: Served, method: str, path: str) -> None:
    wrong = shared.project if _kind(path) is KeyKind.ADMINISTRATOR else shared.admin
    error = refused(wrong.request(method, _filled(path), content=b"{not read"), 403, "forbidden")
    assert error["details"]["needed"] == _kind(path).value


@pytest.fixture(scope="module")
def revoked(shared: Served) -> httpx.Client:
    made = answered(shared.admin.post(f"{CORE}/projects/default/keys", json={"name": "gone"}), 201)
    client = shared.client(made["secret"])
    answered(client.get(f"{V1}/project"))
    assert shared.admin.delete(f"{CORE}/projects/default/keys/{made['id']}").status_code == 204
    return client


@pytest.mark.parametrize("method, path", [it for it in GUARDED if _kind(it[1]) is KeyKind.PROJECT])
def test_a_revoked_key_works_nowhere(shared: Served, revoked: httpx.Client, method: str, path: str) -> None:
    refused(revoked.request(method, _filled(path)), 401, "invalid_api_key")


@pytest.fixture(scope="module")
def theirs(shared: Served) -> Iterator[tuple[httpx.Client, str]]:
    """Another project's client, and a running Session of the project `default`."""
    session = shared.session(runtime_image_id="web")["id"]
    yield shared.new_project("other"), session
    answered(shared.project.delete(f"{SESSIONS}/{session}"), 202)


BODIES: dict[tuple[str, str], Json] = {("post", SESSIONS + "/{session}/exec"): {"argv": ["true"]}}
BODIES["post", SESSIONS + "/{session}/files/move"] = {"source": "a", "target": "b"}


@pytest.mark.produces(Reason.NOT_FOUND)
@pytest.mark.parametrize("method, path", IN_A_SESSION)
def test_what_another_project_owns_is_as_what_does_not_exist(
    theirs: tuple[httpx.Client, str], method: str, path: str
) -> None:
    client, session = theirs
    answers = []
    for name in (session, "ses_00000000000000000000"):
        query = {"path": "x"} if "/files" in path and not path.endswith("move") else None
        response = client.request(method, _filled(path, session=name), json=BODIES.get((method, path)), params=query)
        error = refused(response, 404, "not_found")
        answers.append((error["message"].replace(name, "…"), error["details"]))
    assert answers[0] == answers[1]


def test_lists_show_a_projects_own_only(shared: Served, theirs: tuple[httpx.Client, str]) -> None:
    client, session = theirs
    assert answered(client.get(SESSIONS))["items"] == []
    assert session in [it["id"] for it in answered(shared.project.get(SESSIONS))["items"]]
    assert session in [it["id"] for it in answered(shared.admin.get(f"{CORE}/projects/default/sessions"))["items"]]


@pytest.mark.parametrize("path", STRANGE_PATHS)
def test_unknown_paths_of_a_namespace_tell_nothing_without_a_key(shared: Served, path: str) -> None:
    raw = httpx.URL(shared.address).copy_with(raw_path=path.encode())
    refused(shared.nobody.get(raw), 401, "invalid_api_key")


def test_no_route_and_no_such_method_are_envelopes(shared: Served) -> None:
    refused(shared.admin.get(f"{CORE}/nope"), 404, "not_found")
    refused(shared.nobody.get("/nope"), 404, "not_found")
    response = shared.admin.delete(f"{IMAGES}/web")
    refused(response, 405, "not_found")
    assert {it.strip() for it in response.headers["allow"].split(",")} >= {"GET"} or response.headers["allow"]


def test_health_needs_no_key(shared: Served) -> None:
    assert answered(shared.nobody.get("/healthz")) == {"status": "ok"}
    assert answered(shared.nobody.get("/readyz")) == {"status": "ok"}


def test_a_request_id_is_echoed_or_made(shared: Served) -> None:
    assert shared.nobody.get("/healthz", headers={"X-Request-Id": "job-7:a"}).headers["x-request-id"] == "job-7:a"
    for strange in (b"a b", b"x" * 129, "é".encode(), b"<x>"):
        answer = shared.nobody.get("/healthz", headers={b"X-Request-Id": strange})
        assert answer.headers["x-request-id"].startswith("req_")
    made = [shared.nobody.get("/healthz").headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1]


def test_secrets_are_shown_once_and_are_in_no_other_answer(shared: Served) -> None:
    made = answered(shared.admin.post(f"{CORE}/projects/default/keys", json={"name": "k", "principal": "ann"}), 201)
    assert made["secret"].startswith("sbp_")
    listed = shared.admin.get(f"{CORE}/projects/default/keys").text
    assert made["id"] in listed
    assert made["secret"] not in listed
    assert made["secret"] not in shared.admin.get(f"{CORE}/audit").text
    refused(shared.admin.delete(f"{CORE}/projects/default/keys/key_00000000000000000000"), 404, "not_found")
