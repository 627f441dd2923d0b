"""What explain answers is what admission does, over random installations; and what would change if ….

`base` is the healthy default beside every case.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.served import CORE, IMAGES, SESSIONS, V1, Json, Served, answered

SANDBOX = f"{CORE}/sandbox"
SUBJECTS = ["deployment", "project:default", "scope:org:a", "scope:team:t", "scope:room:r", "agent:default:coder"]
CEILINGS = SUBJECTS[:-1]
WORDS = ["web", "web:1", "web:2", "web:canary", "tool", "base", "@default", "wep", "web:9"]


class Place(NamedTuple):
    """An installation, and a key that is held to team:t."""

    served: Served
    held: httpx.Client


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    it = Served(tmp_path_factory.mktemp("explain"))
    try:
        for name, content in (("base", "base"), ("web", "one"), ("web", "two"), ("tool", "tool")):
            it.image(name, content, promote="stable")
        answered(it.deploy(default_image="base"))
        answered(it.admin.put(f"{IMAGES}/web/channels/canary", json={"release": 1}))
        for scope, parent in (("org:a", None), ("team:t", "org:a"), ("room:r", "team:t")):
            answered(it.admin.put(f"{SANDBOX}/scopes/{scope}", json={"parent": parent}))
        for body in ({"name": "plain"}, {"name": "webby", "runtime_image_id": "web:1"}):
            answered(it.project.post(f"{V1}/environments/templates", json=body), 201)
        key = answered(it.admin.post(f"{CORE}/projects/default/keys", json={"name": "h", "scope": "team:t"}), 201)
        yield Place(it, it.client(key["secret"]))
    finally:
        it.close()


Row = tuple[str, Json]
"""A path below `sandbox`, and the body that is put there."""

BINDING = st.tuples(st.sampled_from(SUBJECTS), st.sampled_from(WORDS), st.sampled_from(["prefer", "enforce"])).map(
    lambda it: (f"bindings/{it[0]}", {"runtime_image_id": it[1], "mode": "enforce" if it[0] == "deployment" else it[2]})
)
LISTED = st.lists(st.sampled_from(["base", "web", "tool"]), max_size=3, unique=True)
LIST = st.tuples(st.sampled_from(CEILINGS), LISTED).map(lambda it: (f"allow-lists/{it[0]}", {"images": it[1]}))
OVERRIDE = st.sampled_from(CEILINGS).map(lambda it: (f"overrides/{it}", {"override": "deny"}))
GRANT: st.SearchStrategy[Row] = st.sampled_from(CEILINGS[1:]).map(lambda it: (f"grants/{it}/tool", {}))
ROWS: st.SearchStrategy[list[Row]] = st.lists(BINDING | BINDING | LIST | OVERRIDE | GRANT, max_size=6)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "runtime_image_id": st.sampled_from(WORDS),
        "template": st.sampled_from(["plain", "webby"]),
        "agent": st.sampled_from(["coder", "other"]),
        "scope": st.sampled_from(["room:r", "team:t", "org:a", "room:none"]),
        "requires": st.just(["node>=20"]),
    },
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.sampled_from(["standard", "restricted"]), st.lists(WISHES, min_size=1, max_size=4), st.booleans())
def test_explain_is_admission(place: Place, rows: list[Row], tier: str, wishes: list[Json], held: bool) -> None:  # noqa: FBT001
    admin = place.served.admin
    answered(admin.patch(f"{IMAGES}/tool", json={"tier": tier}))
    # What the checks at write refuse stays unwritten; ceilings that come later let standing words fail all the same.
    written = [path for path, body in rows if admin.put(f"{SANDBOX}/{path}", json=body).is_success]
    try:
        for wish in wishes:
            _compare(place.held if held else place.served.project, wish)
            if not held:
                of_admin = admin.post(f"{SANDBOX}/explain", json={"project": "default", **wish})
                assert _without_id(of_admin) == _without_id(place.served.project.post(f"{V1}/explain", json=wish))
    finally:
        answered(admin.patch(f"{IMAGES}/tool", json={"tier": "standard"}))
        for path in dict.fromkeys(written):
            assert admin.delete(f"{SANDBOX}/{path}").status_code == 204


def _compare(client: httpx.Client, wish: Json) -> None:
    explained = client.post(f"{V1}/explain", json=wish)
    made = client.post(SESSIONS, json={**wish, "wait_seconds": 600})
    if not explained.is_success:  # there is no such place for a Session to act in
        assert _without_id(explained) == _without_id(made)
        return
    found = explained.json()
    if found["refusal"] is not None:
        assert not made.is_success, found
        assert {name: made.json()["error"][name] for name in found["refusal"]} == found["refusal"]
        return
    session = answered(made, 201)
    assert client.delete(f"{SESSIONS}/{session['id']}").is_success
    assert session["image"] == found["resolved"]
    assert session["trail"] == found["trail"]


def _without_id(response: httpx.Response) -> Any:
    """Status and body, but for the request's own id."""
    body = response.json()
    if "error" in body:
        del body["error"]["request_id"]
    return response.status_code, body


def _rows(answer: Json) -> list[tuple[str, str, str | None, str, str]]:
    def said(it: Json) -> str:
        return str(it["image"] or it["reason"])

    return [(it["kind"], it["name"], it["project"], said(it["before"]), said(it["after"])) for it in answer["changes"]]


TEMPLATE, AGENT, ORG = ("template", "webby", "default"), ("agent", "coder", "default"), ("scope", "org:a", None)
SUPPOSED: list[tuple[Json, list[tuple[str | None, ...]]]] = [
    (
        {"binding": {"subject": "project:default", "runtime_image_id": "tool"}},
        [
            ("project", "default", "default", "base:1", "tool:1"),
            ("template", "plain", "default", "base:1", "tool:1"),
        ],
    ),
    ({"binding": {"subject": "agent:default:coder", "runtime_image_id": "wep"}}, [(*AGENT, "base:1", "image_unknown")]),
    (
        {"binding": {"subject": "scope:team:t", "runtime_image_id": "web", "mode": "enforce"}},
        [("scope", name, None, "base:1", "web:2") for name in ("room:r", "team:t")],
    ),
    ({"binding": {"subject": "scope:room:r", "runtime_image_id": None}}, []),
    ({"allow_list": {"subject": "project:default", "images": ["base"]}}, [(*TEMPLATE, "web:1", "image_not_allowed")]),
    ({"allow_list": {"subject": "scope:org:a", "absent": True}}, []),
    ({"channel": {"image": "base", "channel": "stable", "release": 1}}, []),
    ({"retire": {"image": "web"}}, [(*TEMPLATE, "web:1", "image_retired")]),
    ({"retire": {"image": "web", "release": 1}}, [(*TEMPLATE, "web:1", "release_retired")]),
    ({"retire": {"image": "web", "release": 2}}, []),
]


@pytest.mark.parametrize(
    "supposed, changed", SUPPOSED, ids=lambda it: next(iter(it), "") if isinstance(it, dict) else ""
)
def test_what_would_change_is_listed_and_nothing_is_written(
    place: Place, supposed: Json, changed: list[tuple[str | None, ...]]
) -> None:
    admin, what = place.served.admin, f"{SANDBOX}/what-if"
    answered(admin.put(f"{SANDBOX}/bindings/agent:default:coder", json={"runtime_image_id": "base"}))
    before = answered(admin.get(f"{CORE}/audit"))["items"]
    try:
        assert _rows(answered(admin.post(what, json=supposed))) == changed
        assert _rows(answered(admin.post(what, json=supposed))) == changed
        assert answered(admin.get(f"{CORE}/audit"))["items"] == before
    finally:
        assert admin.delete(f"{SANDBOX}/bindings/agent:default:coder").status_code == 204


def test_what_is_supposed_has_to_be_there_and_is_one_thing(place: Place) -> None:
    admin, what = place.served.admin, f"{SANDBOX}/what-if"
    for said, status, code in (
        ({"retire": {"image": "wep"}}, 400, "image_unknown"),
        ({"retire": {"image": "web", "release": 9}}, 400, "release_unknown"),
        ({"channel": {"image": "web", "channel": "stable", "release": 9}}, 400, "release_unknown"),
        ({"binding": {"subject": "scope:team:none", "runtime_image_id": "web"}}, 400, "scope_unknown"),
        ({"binding": {"subject": "nobody", "runtime_image_id": "web"}}, 400, "invalid_body"),
        ({}, 400, "invalid_body"),
        ({"retire": {"image": "web"}, "channel": {"image": "web", "channel": "c", "release": 1}}, 400, "invalid_body"),
    ):
        answer = admin.post(what, json=said)
        assert (answer.json()["error"]["code"]) == code, said
        assert answer.status_code in (status, 404)


def test_a_project_asks_for_its_own_preferences(place: Place) -> None:
    client, what = place.served.project, f"{V1}/what-if"
    assert _rows(answered(client.post(what, json={"runtime_image_id": "tool"}))) == [
        ("project", "default", "default", "base:1", "tool:1"),
        ("template", "plain", "default", "base:1", "tool:1"),
    ]
    of_agent = answered(client.post(what, json={"runtime_image_id": "tool", "agent": "coder"}))
    assert _rows(of_agent) == [(*AGENT, "base:1", "tool:1")]
    unknown = client.post(what, json={"runtime_image_id": "tool", "scope": "team:none"})
    assert unknown.json()["error"]["code"] == "scope_unknown"
    outside = place.held.post(what, json={"runtime_image_id": "tool", "scope": "org:a"})
    assert outside.json()["error"]["code"] == "scope_unknown"
    both = client.post(what, json={"runtime_image_id": "tool", "scope": "team:t", "agent": "coder"})
    assert both.json()["error"]["code"] == "invalid_body"
