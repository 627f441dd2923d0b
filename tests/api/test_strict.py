"""Bodies, queries and paths are understood whole or refused, with the first field at fault. Nothing makes a 500."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbay.api.contract import openapi
from sandbay.api.strict import RoomyRoute, StrictRoute, parse
from sandbay.api.wire.base import PATTERNS
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Json, Served, answered, refused

JSON = {"Content-Type": "application/json"}
NO_SESSION = f"{SESSIONS}/ses_00000000000000000000"
POOL = {"name": "a", "provider": "memory", "platform": "linux/amd64"}
DEPLOYMENT = {"expected_generation": 1, "default_image": None, "default_platform": "linux/amd64", "pools": [POOL]}


def nested(depth: int) -> str:
    return '{"metadata": ' + '{"a":' * depth + "1" + "}" * (depth + 1)


RAW = [
    ("", "body"),
    ("{", "body"),
    ("[]", "body"),
    ("null", "body"),
    ('"x"', "body"),
    ("{} x", "body"),
    ("\ufeff{}", "body"),
    ('{"platform": "a", "platform": "a"}', "platform"),
    ('{"env": {"A": "1", "A": "1"}}', "env.A"),
    ('{"wait_seconds": NaN}', "wait_seconds"),
    ('{"resources": {"cpus": Infinity}}', "resources.cpus"),
    ('{"resources": {"cpus": 1e999}}', "resources.cpus"),
    ('{"wait_seconds": ' + "9" * 5000 + "}", "wait_seconds"),
    (nested(40), "metadata" + ".a" * 31),
    (nested(100_000), "body"),
    ('{"platform": "\\ud800"}', "platform"),
    ('{"platform": "a\\u0000"}', "platform"),
    ('{"env": {"A\\ud800": "1"}}', "env.A\ufffd\ufffd\ufffd"),
]

SESSION_FIELDS: list[tuple[Json, str]] = [
    ({"nope": 1}, "nope"),
    ({"runtime_image_id": 7}, "runtime_image_id"),
    ({"runtime_image_id": "web\0"}, "runtime_image_id"),
    ({"runtime_image_id": ["web"]}, "runtime_image_id"),
    ({"platform": "windows"}, "platform"),
    ({"env": []}, "env"),
    ({"env": {"": "x"}}, "env."),
    ({"env": {"1A": "x"}}, "env.1A"),
    ({"env": {"A=B": "x"}}, "env.A=B"),
    ({"env": {"A": 1}}, "env.A"),
    ({"env": {"A": None}}, "env.A"),
    ({"env": {"A": "x\0"}}, "env.A"),
    ({"env": {"A": "x" * 131_072}}, "env"),
    ({"env": {f"A{n}": "x" * 100_000 for n in range(6)}}, "env"),
    ({"wait_seconds": -1}, "wait_seconds"),
    ({"wait_seconds": 1801}, "wait_seconds"),
    ({"wait_seconds": 1.0}, "wait_seconds"),
    ({"wait_seconds": "1"}, "wait_seconds"),
    ({"wait_seconds": True}, "wait_seconds"),
    ({"network": "host"}, "network"),
    ({"network": 1}, "network"),
    ({"resources": {"cpus": 0}}, "resources.cpus"),
    ({"resources": {"cpus": "1"}}, "resources.cpus"),
    ({"resources": {"memory": 1.5}}, "resources.memory"),
    ({"resources": {"pids": -1}}, "resources.pids"),
    ({"resources": {"disk": 1}}, "resources.disk"),
    ({"metadata": {"a": 1}}, "metadata.a"),
    ({"metadata": {"": "x"}}, "metadata."),
    ({"metadata": {"a": "x" * 4097}}, "metadata.a"),
    ({"metadata": {str(n): "x" for n in range(65)}}, "metadata"),
]

EXEC_FIELDS: list[tuple[Json, str]] = [
    ({"argv": "ls"}, "argv"),
    ({"argv": ["a\0"]}, "argv.0"),
    ({"argv": ["a", 1]}, "argv.1"),
    ({"argv": ["x" * 131_072]}, "argv"),
    ({"argv": ["x" * 1000] * 600}, "argv"),
    ({"argv": ["a"], "shell": "a"}, "shell"),
    ({"shell": ""}, "shell"),
    ({"shell": "ls", "entrypoint": ["a"]}, "entrypoint"),
    ({"entrypoint": "a"}, "entrypoint"),
    ({"image_command": 1}, "image_command"),
    ({"stdin": "%%%"}, "stdin"),
    ({"stdin": 1}, "stdin"),
    ({"timeout": 0}, "timeout"),
    ({"timeout": -1}, "timeout"),
    ({"timeout": 10**9}, "timeout"),
    ({"user": "a\0"}, "user"),
    ({"workdir": "a\0"}, "workdir"),
    ({"tty": True}, "tty"),
]

DEPLOYMENT_FIELDS: list[tuple[Json, str]] = [
    ({"pools": [{**POOL, "size": {"cpus": 0}}]}, "pools.0.size.cpus"),
    ({"pools": [{**POOL, "size": {"memory": 1}}]}, "pools.0.size.memory"),
    ({"pools": [POOL, POOL]}, "pools"),
    ({"pools": [POOL, {**POOL, "name": "B"}]}, "pools.1.name"),
    ({"pools": [{**POOL, "platform": "amd64"}]}, "pools.0.platform"),
    ({"pools": [{**POOL, "admission": "shut"}]}, "pools.0.admission"),
    ({"pools": [{**POOL, "node_selector": {"a": 1}}]}, "pools.0.node_selector.a"),
    ({"pools": [{**POOL, "slots": 1}]}, "pools.0.slots"),
    ({"pools": {}}, "pools"),
    ({"default_platform": "x"}, "default_platform"),
    ({"expected_generation": "1"}, "expected_generation"),
    ({"expected_generation": 10**30}, "expected_generation"),
    ({"generation": 1}, "generation"),
]

OTHERS: list[tuple[str, str, Any, str]] = [
    ("POST", IMAGES, {}, "name"),
    ("POST", IMAGES, {"name": "Web"}, "name"),
    ("POST", IMAGES, {"name": "web "}, "name"),
    ("POST", IMAGES, {"name": "w\u0435b"}, "name"),  # a Cyrillic e
    ("POST", IMAGES, {"name": "e\u0301tude"}, "name"),
    ("POST", IMAGES, {"name": "\u00e9tude"}, "name"),
    ("POST", IMAGES, {"name": "img_00000000000000000000"}, "name"),
    ("POST", IMAGES, {"name": "web", "description": "x\0"}, "description"),
    ("PATCH", f"{IMAGES}/web", {"state": "gone"}, "state"),
    ("POST", f"{IMAGES}/web/releases", {"source": {}}, "source"),
    ("POST", f"{IMAGES}/web/releases", {"source": {"upload": "u", "url": "x"}}, "source.url"),
    ("POST", f"{IMAGES}/web/releases", {"source": {"upload": "u"}, "platforms": []}, "platforms"),
    ("POST", f"{IMAGES}/web/releases", {"source": {"upload": "u"}, "platforms": ["x"]}, "platforms.0"),
    ("POST", f"{IMAGES}/web/releases", {"source": {"upload": "u"}, "promote": "7up"}, "promote"),
    ("PATCH", f"{IMAGES}/web/releases/1", {"state": "pending"}, "state"),
    ("PUT", f"{IMAGES}/web/channels/stable", {"release": 0}, "release"),
    ("PUT", f"{IMAGES}/web/channels/stable", {"release": True}, "release"),
    ("PUT", f"{IMAGES}/web/channels/7up", {"release": 1}, "channel"),
    ("POST", f"{IMAGES}/web/evict", {"node": ""}, "node"),
    ("POST", f"{IMAGES}/web/verify", {"node": ""}, "node"),
    ("POST", f"{CORE}/projects", {"name": "prj_00000000000000000000"}, "name"),
    ("POST", f"{CORE}/projects/default/keys", {"name": "a\nb"}, "name"),
    ("PATCH", f"{V1}/project", {"runtime_image_id": 1}, "runtime_image_id"),
    ("POST", f"{NO_SESSION}/files/move", {"source": "", "target": "b"}, "source"),
    ("POST", f"{NO_SESSION}/files/move", {"source": "a", "target": "b\0"}, "target"),
    ("POST", f"{NO_SESSION}/files/move", {"source": "a", "target": "b" * 4097}, "target"),
    ("POST", f"{V1}/explain", {"env": {}}, "env"),
]

QUERIES: list[tuple[str, str]] = [
    (f"{IMAGES}?limit=0", "limit"),
    (f"{IMAGES}?limit=501", "limit"),
    (f"{IMAGES}?limit=x", "limit"),
    (f"{IMAGES}?limit=1&limit=2", "limit"),
    (f"{IMAGES}?page=1", "page"),
    (f"{IMAGES}?after=%00", "after"),
    (f"{IMAGES}/%00", "image"),
    (f"{IMAGES}/web/releases/x", "number"),
    (f"{IMAGES}/web/releases/0", "number"),
    (f"{IMAGES}/web/releases/{10**30}", "number"),
    (f"{NO_SESSION}?wait=31", "wait"),
    (f"{NO_SESSION}?wait=-1", "wait"),
    (f"{NO_SESSION}?status=asleep", "status"),
    (f"{NO_SESSION}/files", "path"),
    (f"{NO_SESSION}/files?path=", "path"),
    (f"{NO_SESSION}/files?path=%00", "path"),
    (f"{NO_SESSION}/files?path=" + "x" * 4097, "path"),
]


def _send(served: Served, method: str, path: str, body: str | bytes) -> Any:
    client = served.admin if path.startswith(CORE) else served.project
    return client.request(method, path, content=body, headers=JSON)


@pytest.mark.produces(Reason.INVALID_BODY)
@pytest.mark.parametrize("body, param", RAW, ids=range(len(RAW)))
def test_json_without_liberties(shared: Served, body: str, param: str) -> None:
    refused(_send(shared, "POST", SESSIONS, body.encode("utf-8", "surrogatepass")), 400, "invalid_body", param)


@pytest.mark.parametrize("fields, param", SESSION_FIELDS)
def test_fields_of_a_session(shared: Served, fields: Json, param: str) -> None:
    refused(_send(shared, "POST", SESSIONS, json.dumps(fields)), 400, "invalid_body", param)


@pytest.mark.parametrize("fields, param", EXEC_FIELDS)
def test_fields_of_a_command(shared: Served, fields: Json, param: str) -> None:
    refused(_send(shared, "POST", f"{NO_SESSION}/exec", json.dumps(fields)), 400, "invalid_body", param)


@pytest.mark.parametrize("fields, param", DEPLOYMENT_FIELDS)
def test_fields_of_a_deployment(shared: Served, fields: Json, param: str) -> None:
    body = json.dumps({**DEPLOYMENT, **fields})
    refused(_send(shared, "PUT", f"{CORE}/sandbox/deployment", body), 400, "invalid_body", param)


@pytest.mark.parametrize("method, path, body, param", OTHERS)
def test_fields_of_everything_else(shared: Served, method: str, path: str, body: Any, param: str) -> None:
    said = refused(_send(shared, method, path, json.dumps(body)), 400, "invalid_body", param)["message"]
    assert not any(pattern in said for pattern in PATTERNS), "a name's rule is told in words"


@pytest.mark.parametrize("path, param", QUERIES)
def test_queries_and_paths(shared: Served, path: str, param: str) -> None:
    client = shared.admin if path.startswith(CORE) else shared.project
    refused(client.get(path), 400, "invalid_body", param)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "é"])
def test_an_idempotency_key_is_short_and_printable(shared: Served, key: str) -> None:
    headers = {b"Idempotency-Key": key.encode()}
    refused(shared.project.post(SESSIONS, json={}, headers=headers), 400, "invalid_body", "Idempotency-Key")


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
def test_a_body_says_that_it_is_json(shared: Served, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    refused(shared.project.post(f"{V1}/explain", content=b"{}", headers=headers), 400, "invalid_body", "Content-Type")
    for good in ("application/json", "Application/JSON; charset=UTF-8"):
        answered(shared.project.post(f"{V1}/explain", content=b"{}", headers={"Content-Type": good}))


@pytest.mark.parametrize("path, limit", [(f"{V1}/explain", StrictRoute.body_bytes), (SESSIONS, RoomyRoute.body_bytes)])
def test_a_body_that_is_too_large_is_told_the_limit(shared: Served, path: str, limit: int) -> None:
    body = b'{"platform": "' + b"x" * limit + b'"}'
    error = refused(_send(shared, "POST", path, body), 400, "invalid_body", "body")
    assert error["details"] == {"limit_bytes": limit}


def test_what_was_sent_is_not_repeated(shared: Served) -> None:
    error = refused(
        _send(shared, "POST", SESSIONS, '{"env": {"TOKEN": ["hunter2"]}}'), 400, "invalid_body", "env.TOKEN"
    )
    assert "hunter2" not in json.dumps(error)


def test_nothing_refused_left_anything(served: Served) -> None:
    for fields, _ in SESSION_FIELDS[:8]:
        served.project.post(SESSIONS, json=fields)
    assert answered(served.project.get(SESSIONS))["items"] == []


WRITES = [
    (method.upper(), path)
    for path, operations in openapi()["paths"].items()
    for method, operation in operations.items()
    if "application/json" in operation.get("requestBody", {}).get("content", {})
]
NAMES = sorted(
    {
        name
        for name, schema in openapi()["components"]["schemas"].items()
        if name.endswith(("In", "Change"))
        for name in schema["properties"]
    }
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["web", "a"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
BODIES = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), VALUES, max_size=4) | VALUES
STRANGE = {
    "registry": "a\\b",
    "image": "web",
    "number": "1",
    "channel": "stable",
    "project": "p",
    "session": "ses_00000000000000000000",
    "publish": "pub_00000000000000000000",
    "promotion": "prm_00000000000000000000",
    "template": "tmp_00000000000000000000",
    "scope": "team:none",
    "subject": "scope:team:none",
    "agent": "coder",
    "secret": "gh",
}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.sampled_from(WRITES), body=BODIES)
def test_no_json_makes_a_fault_of_ours(shared: Served, where: tuple[str, str], body: Any) -> None:
    method, path = where
    response = _send(shared, method, path.format_map(STRANGE), json.dumps(body))
    assert response.status_code < 500 or response.status_code == 503, response.text
    if response.status_code >= 400:
        assert set(response.json()) == {"error"}


@settings(max_examples=300, deadline=None)
@given(body=st.binary(max_size=40) | st.text(alphabet='{}[]",:01e-.naNI \\u', max_size=40).map(str.encode))
def test_what_is_parsed_is_what_json_means(body: bytes) -> None:
    value = _parsed(body)
    if isinstance(value, Refusal):
        assert value.reason is Reason.INVALID_BODY
        assert value.param
    else:
        assert value == json.loads(body)
        json.dumps(value, allow_nan=False)


def _parsed(body: bytes) -> Any:
    try:
        return parse(body)
    except RefusedError as error:
        return error.refusal
