"""Scopes, bindings, ceilings and keys that are held to a part of a project: who may, who may not, and what is left.

`web` is the healthy default beside each case: a fallback would be seen.
"""

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Json, Served, answered, refused

SANDBOX = f"{CORE}/sandbox"
SCOPES, BINDINGS, GRANTS = f"{SANDBOX}/scopes", f"{SANDBOX}/bindings", f"{SANDBOX}/grants"
LISTS, OVERRIDES = f"{SANDBOX}/allow-lists", f"{SANDBOX}/overrides"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The default image `web`, and `other`. Each test has a project of its own."""
    it = Served(tmp_path_factory.mktemp("selection"))
    try:
        for name in ("web", "other"):
            it.image(name, promote="stable")
        answered(it.deploy(default_image="web"))
        yield it
    finally:
        it.close()


@dataclass
class Tenant:
    """A project with org:… ◀ team:… ◀ room:…, where the team and the room are its own."""

    house: Served
    name: str = field(default_factory=lambda: f"p{next(_numbers)}")

    def __post_init__(self) -> None:
        self.client = self.house.new_project(self.name)
        self.org, self.team, self.room = (f"{kind}:{self.name}" for kind in ("org", "team", "room"))
        self.scope(self.org)
        self.scope(self.team, self.org, self.name)
        self.scope(self.room, self.team, self.name)

    def scope(self, name: str, parent: str | None = None, project: str | None = None) -> Json:
        body = {"parent": parent, "project": project}
        return answered(self.house.admin.put(f"{SCOPES}/{name}", json=body))

    def key(self, **held: Any) -> httpx.Client:
        """A client that is held to something."""
        body = {"name": "held", **held}
        made = answered(self.house.admin.post(f"{CORE}/projects/{self.name}/keys", json=body), 201)
        assert {name: made[name] for name in held} == held
        return self.house.client(made["secret"])

    def create(self, client: httpx.Client | None = None, /, **asked: Any) -> httpx.Response:
        return (client or self.client).post(SESSIONS, json={"wait_seconds": 60, **asked})

    def chosen(self, client: httpx.Client | None = None, /, **asked: Any) -> tuple[str, str, str | None]:
        """Image, level and subject of a Session; which is ended again."""
        client = client or self.client
        made = answered(self.create(client, **asked), 201)
        assert client.delete(f"{SESSIONS}/{made['id']}").is_success
        by = made["image"]["decided_by"]
        return made["image"]["name"], by["level"], by["subject"]

    def bind(self, subject: str, image: str, **said: Any) -> Json:
        body = {"runtime_image_id": image, **said}
        return answered(self.house.admin.put(f"{BINDINGS}/{subject}", json=body))

    def audited(self, subject: str) -> list[tuple[str, str]]:
        """Action and outcome, newest first."""
        found = answered(self.house.admin.get(f"{CORE}/audit", params={"subject": subject}))["items"]
        return [(it["action"], it["outcome"]) for it in found]


@pytest.fixture
def mine(house: Served) -> Iterator[Tenant]:
    it = Tenant(house)
    yield it
    for session in answered(it.client.get(SESSIONS))["items"]:
        assert it.client.delete(f"{SESSIONS}/{session['id']}").is_success


@pytest.fixture
def theirs(house: Served) -> Tenant:
    return Tenant(house)


def test_the_narrowest_preference_decides_and_an_enforced_word_stands_above(mine: Tenant) -> None:
    where = {"scope": mine.room, "agent": "coder"}
    assert mine.chosen(**where)[:2] == ("web", "deployment")
    for subject, level, called in (
        (f"project:{mine.name}", "project", mine.name),
        (f"scope:{mine.org}", "scope", mine.org),
        (f"scope:{mine.room}", "scope", mine.room),
        (f"agent:{mine.name}:coder", "agent", "coder"),
    ):
        made = mine.bind(subject, "other", reason="for the tests")
        assert (made["subject"], made["mode"], made["revision"]) == (subject, "prefer", 1)
        assert mine.chosen(**where) == ("other", level, called)
    assert mine.chosen(runtime_image_id="web", **where)[:2] == ("web", "session")
    mine.bind(f"scope:{mine.team}", "web", mode="enforce")
    assert mine.chosen(**where) == ("web", "scope", mine.team)
    assert mine.chosen(agent="coder") == ("other", "agent", "coder")


def test_what_is_pinned_tells_that_its_channel_has_moved_on(house: Served, mine: Tenant) -> None:
    house.image(f"moving-{mine.name}", promote="stable")
    name, agent = f"moving-{mine.name}", f"{V1}/agents/coder/binding"
    pinned = {"runtime_image_id": f"{name}:1"}
    assert answered(mine.client.put(agent, json=pinned))["upgrade_available"] is None
    mine.bind(f"scope:{mine.org}", name)
    work = answered(mine.client.post(f"{V1}/environments/templates", json={"name": "work", **pinned}), 201)
    assert work["upgrade_available"] is None

    house.image(name, "newer", promote="stable")
    assert answered(mine.client.get(agent))["upgrade_available"] == f"{name}:2"
    told = {it["subject"]: it["upgrade_available"] for it in answered(house.admin.get(BINDINGS))["items"]}
    assert told[f"agent:{mine.name}:coder"] == f"{name}:2"
    assert told[f"scope:{mine.org}"] is None
    for path in ("", "/work"):
        found = answered(mine.client.get(f"{V1}/environments/templates{path}"))
        assert (found["items"][0] if not path else found)["upgrade_available"] == f"{name}:2"
    assert mine.chosen(agent="coder")[0] == name
    assert answered(mine.client.get(agent))["runtime_image_id"] == f"{name}:1"


@pytest.mark.produces(Reason.IMAGE_ENFORCED)
def test_a_wish_gives_way_to_what_is_enforced(mine: Tenant) -> None:
    mine.bind(f"scope:{mine.team}", "other", mode="enforce")
    error = refused(mine.create(scope=mine.room, runtime_image_id="web"), 403, "image_enforced", "runtime_image_id")
    assert error["details"]["binding"]["subject"] == mine.team
    assert mine.chosen(scope=mine.room, runtime_image_id="other:1")[:2] == ("other", "scope")


@pytest.mark.produces(Reason.IMAGE_NOT_ALLOWED)
def test_an_allow_list_holds_for_whatever_was_chosen(mine: Tenant) -> None:
    admin, path = mine.house.admin, f"{LISTS}/scope:{mine.team}"
    listed = answered(admin.put(path, json={"images": ["other"]}))
    assert (listed["images"], listed["everything"], listed["revision"]) == (["other"], False, 1)
    refused(mine.create(scope=mine.room), 403, "image_not_allowed")
    refused(mine.create(scope=mine.room, runtime_image_id="web"), 403, "image_not_allowed", "runtime_image_id")
    assert mine.chosen(scope=mine.room, runtime_image_id="other")[0] == "other"
    assert mine.chosen(scope=mine.org)[0] == "web"
    answered(admin.put(path, json={"labels": [{"kind": "none"}]}))
    refused(mine.create(scope=mine.room, runtime_image_id="other"), 403, "image_not_allowed", "runtime_image_id")
    assert admin.delete(path).status_code == 204
    assert mine.chosen(scope=mine.room)[0] == "web"
    refused(admin.put(path, json={"images": ["nope"]}), 400, "image_unknown", "images")


@pytest.mark.produces(Reason.IMAGE_NOT_GRANTED)
def test_a_restricted_image_needs_a_grant(house: Served, mine: Tenant) -> None:
    admin = house.admin
    house.image("secret", promote="stable")
    assert answered(admin.patch(f"{IMAGES}/secret", json={"tier": "restricted"}))["tier"] == "restricted"
    wish = {"runtime_image_id": "secret", "scope": mine.room}
    refused(mine.create(**wish), 403, "image_not_granted", "runtime_image_id")
    for subject in (f"project:{mine.name}", f"scope:{mine.team}"):
        made = answered(admin.put(f"{GRANTS}/{subject}/secret", json={"reason": "they asked"}))
        assert (made["subject"], made["image"]) == (subject, "secret")
        assert mine.chosen(**wish)[0] == "secret"
        assert made in answered(admin.get(GRANTS))["items"]
        assert admin.delete(f"{GRANTS}/{subject}/secret").status_code == 204
        refused(mine.create(**wish), 403, "image_not_granted", "runtime_image_id")
    refused(admin.delete(f"{GRANTS}/scope:{mine.team}/secret"), 404, "not_found")
    refused(admin.put(f"{GRANTS}/deployment/secret", json={}), 400, "invalid_body", "subject")


@pytest.mark.produces(Reason.OVERRIDE_DENIED)
def test_any_deny_on_the_path_refuses_a_request_that_names_an_image(mine: Tenant) -> None:
    path = f"{OVERRIDES}/scope:{mine.team}"
    answered(mine.house.admin.put(path, json={"override": "deny"}))
    for image in ("other", "web"):
        refused(mine.create(scope=mine.room, runtime_image_id=image), 403, "override_denied", "runtime_image_id")
    assert mine.chosen(scope=mine.room)[0] == "web"
    assert mine.house.admin.delete(path).status_code == 204
    assert mine.chosen(scope=mine.room, runtime_image_id="other")[0] == "other"


@pytest.mark.produces(Reason.SCOPE_REQUIRED)
def test_an_omitted_scope_sheds_no_ceiling(mine: Tenant) -> None:
    project = answered(mine.client.get(f"{V1}/project"))
    path = f"{CORE}/projects/{mine.name}"
    changed = answered(mine.house.admin.patch(path, json={"scope_required": True, "expected_revision": 1}))
    assert changed == {**project, "scope_required": True, "revision": 2}
    refused(mine.house.admin.patch(path, json={"expected_revision": 1}), 409, "revision_stale", "expected_revision")
    refused(mine.create(), 400, "scope_required", "scope")
    assert mine.chosen(scope=mine.room)[0] == "web"
    answered(mine.house.admin.put(f"{LISTS}/scope:{mine.room}", json={}))
    held = mine.key(scope=mine.room)
    for asked in ({}, {"scope": None}, {"scope": mine.room}):
        refused(mine.create(held, **asked), 403, "image_not_allowed")


@pytest.mark.produces(Reason.SCOPE_UNKNOWN)
def test_a_strangers_scope_is_as_one_that_does_not_exist(mine: Tenant, theirs: Tenant) -> None:
    mine.bind(f"scope:{theirs.room}", "other")
    known, answers = (theirs.room, "room:none"), []
    for name in (theirs.room, "room:none", "no scope at all", "../x", "-x:y"):
        for path in (SESSIONS, f"{V1}/explain"):
            response = mine.client.post(path, json={"scope": name})
            error = refused(response, 400, "scope_unknown" if name in known else "invalid_body", "scope")
            answers.append((error["code"], error["message"].replace(name, "…"), sorted(error["details"])))
    assert answers[0:2] == answers[2:4]


@pytest.mark.parametrize("verb", ["get", "put", "delete"])
def test_another_projects_binding_is_neither_seen_nor_touched(mine: Tenant, theirs: Tenant, verb: str) -> None:
    theirs.bind(f"scope:{theirs.room}", "other")
    theirs.bind(f"agent:{theirs.name}:coder", "other")
    before = theirs.chosen(scope=theirs.room, agent="coder")
    body = {"json": {"runtime_image_id": "web"}} if verb == "put" else {}
    answers = [
        refused(getattr(mine.client, verb)(f"{V1}/scopes/{name}/binding", **body), 404, "scope_unknown")
        for name in (theirs.room, "room:none")
    ]
    assert answers[0]["message"].replace(theirs.room, "room:none") == answers[1]["message"]
    own = getattr(mine.client, verb)(f"{V1}/agents/coder/binding", **body)
    assert own.status_code == (200 if verb == "put" else 404)  # its own agent of that name, never theirs
    assert theirs.chosen(scope=theirs.room, agent="coder") == before
    assert theirs.room not in mine.client.get(f"{V1}/scopes").text
    if verb != "get":
        action = {"put": "binding.put", "delete": "binding.delete"}[verb]
        assert mine.audited(f"scope:{theirs.room}")[0] == (action, "scope_unknown")


def test_a_project_prefers_for_its_own_scopes_and_agents(mine: Tenant) -> None:
    for path, where in ((f"scopes/{mine.room}", {"scope": mine.room}), ("agents/coder", {"agent": "coder"})):
        binding = f"{V1}/{path}/binding"
        refused(mine.client.get(binding), 404, "not_found")
        made = answered(mine.client.put(binding, json={"runtime_image_id": "other", "reason": "we like it"}))
        assert (made["mode"], made["reason"], made["revision"]) == ("prefer", "we like it", 1)
        changes = made.pop("changes")
        assert all(it["after"] == {"image": "other:1", "reason": None} for it in changes)
        assert [it["name"] for it in changes] == [where.get("scope") or "coder"]
        assert answered(mine.client.get(binding)) == made
        assert mine.chosen(**where)[0] == "other"
        stale = {"runtime_image_id": "web", "expected_revision": 0}
        refused(mine.client.put(binding, json=stale), 409, "revision_stale", "expected_revision")
        refused(mine.client.put(binding, json={"runtime_image_id": "nope"}), 400, "image_unknown", "runtime_image_id")
        refused(
            mine.client.put(binding, json={"runtime_image_id": "web", "mode": "enforce"}), 400, "invalid_body", "mode"
        )
        assert answered(mine.client.get(binding)) == made
        assert mine.client.delete(binding, params={"expected_revision": 1}).status_code == 204
        assert mine.chosen(**where)[0] == "web"


def test_a_project_touches_nothing_that_is_enforced_or_shared(mine: Tenant) -> None:
    subjects = {f"scopes/{mine.room}": f"scope:{mine.room}", "agents/coder": f"agent:{mine.name}:coder"}
    for path, subject in subjects.items():
        mine.bind(subject, "other", mode="enforce")
        for response in (
            mine.client.put(f"{V1}/{path}/binding", json={"runtime_image_id": "web"}),
            mine.client.delete(f"{V1}/{path}/binding"),
        ):
            refused(response, 403, "forbidden")
        assert answered(mine.client.get(f"{V1}/{path}/binding"))["mode"] == "enforce"
    mine.bind(f"project:{mine.name}", "other", mode="enforce")
    for image in (None, "web"):
        refused(mine.client.patch(f"{V1}/project", json={"runtime_image_id": image}), 403, "forbidden")
    refused(mine.client.put(f"{V1}/scopes/{mine.org}/binding", json={"runtime_image_id": "other"}), 403, "forbidden")
    assert mine.audited(f"scope:{mine.org}")[0] == ("binding.put", "forbidden")


def test_a_preference_stays_inside_the_ceiling(mine: Tenant) -> None:
    answered(mine.house.admin.put(f"{LISTS}/scope:{mine.team}", json={"images": ["web"]}))
    response = mine.client.put(f"{V1}/scopes/{mine.room}/binding", json={"runtime_image_id": "other"})
    refused(response, 403, "image_not_allowed", "runtime_image_id")
    assert mine.audited(f"scope:{mine.room}") == [("binding.put", "image_not_allowed")]


def test_a_held_key_acts_where_it_is_held(mine: Tenant) -> None:
    held = mine.key(scope=mine.team, agents=["coder"])
    made = answered(mine.create(held), 201)
    assert (made["scope"], made["agent"]) == (mine.team, "coder")
    assert {it["subject"] for it in made["trail"]} >= {mine.team, mine.org, "coder"}
    assert answered(mine.create(held, scope=mine.room, agent="coder"), 201)["scope"] == mine.room
    for asked, param in (({"scope": mine.org}, "scope"), ({"agent": "other"}, "agent")):
        refused(mine.create(held, **asked), 403, "forbidden", param)
        refused(held.post(f"{V1}/explain", json=asked), 403, "forbidden", param)
    assert [it["name"] for it in answered(held.get(f"{V1}/scopes"))["items"]] == [mine.room, mine.team]
    refused(held.get(f"{V1}/scopes/{mine.org}"), 404, "scope_unknown")
    several = mine.key(agents=["coder", "writer"])
    refused(mine.create(several), 403, "forbidden", "agent")
    assert answered(mine.create(several, agent="writer"), 201)["agent"] == "writer"


def test_a_held_key_binds_only_what_concerns_nothing_outside(mine: Tenant) -> None:
    sibling = f"room:{mine.name}-b"
    mine.scope(sibling, mine.org, mine.name)
    cases: list[tuple[Json, str, int, str | None]] = [
        ({"scope": mine.team}, f"scopes/{mine.room}/binding", 200, None),
        ({"scope": mine.team}, f"scopes/{sibling}/binding", 404, "scope_unknown"),
        ({"scope": mine.team}, f"scopes/{mine.org}/binding", 404, "scope_unknown"),
        ({"scope": mine.team}, "agents/coder/binding", 403, "forbidden"),
        ({"agents": ["coder"]}, "agents/coder/binding", 200, None),
        ({"agents": ["coder"]}, "agents/writer/binding", 403, "forbidden"),
        ({"agents": ["coder"]}, f"scopes/{mine.room}/binding", 403, "forbidden"),
        ({"scope": mine.team, "agents": ["coder"]}, f"scopes/{mine.room}/binding", 403, "forbidden"),
    ]
    for held, path, status, code in cases:
        client = mine.key(**held)
        response = client.put(f"{V1}/{path}", json={"runtime_image_id": "other"})
        assert (response.status_code, response.json().get("error", {}).get("code")) == (status, code), (held, path)
        refused(client.patch(f"{V1}/project", json={"runtime_image_id": "other"}), 403, "forbidden")


def test_a_key_registers_below_what_its_project_was_given(mine: Tenant, theirs: Tenant) -> None:
    client, new = mine.client, f"{V1}/scopes/room:{mine.name}-new"
    made = answered(client.put(new, json={"parent": mine.team}))
    assert (made["parent"], made["revision"]) == (mine.team, 1)
    assert answered(client.put(new, json={"parent": mine.team})) == made
    refused(client.put(new, json={"parent": mine.room}), 403, "forbidden", "parent")  # a move takes it from ceilings
    refused(client.put(f"{V1}/scopes/room:x", json={"parent": mine.org}), 403, "forbidden", "parent")
    refused(client.put(f"{V1}/scopes/room:x", json={"parent": theirs.team}), 400, "scope_unknown", "parent")
    refused(client.put(f"{V1}/scopes/{theirs.room}", json={"parent": mine.team}), 409, "name_taken")
    refused(client.put(f"{V1}/scopes/x", json={"parent": mine.team}), 400, "invalid_body", "scope")
    held = mine.key(scope=mine.room)
    refused(held.put(f"{V1}/scopes/room:y", json={"parent": mine.team}), 400, "scope_unknown", "parent")
    answered(held.put(f"{V1}/scopes/seat:{mine.name}", json={"parent": mine.room}))
    refused(held.delete(f"{V1}/scopes/{mine.room}"), 403, "forbidden")
    refused(client.delete(f"{V1}/scopes/{mine.team}"), 403, "forbidden")
    refused(client.delete(f"{V1}/scopes/{theirs.room}"), 404, "scope_unknown")
    assert client.delete(new).status_code == 204
    assert mine.audited(theirs.room)[0] == ("scope.delete", "scope_unknown")


def test_a_scope_that_moves_takes_its_ceilings_from_its_new_parents(mine: Tenant) -> None:
    other_team = f"team:{mine.name}-b"
    mine.scope(other_team, mine.org, mine.name)
    mine.bind(f"scope:{mine.team}", "other", mode="enforce")
    before = answered(mine.create(scope=mine.room), 201)
    assert before["image"]["name"] == "other"
    moved = mine.scope(mine.room, other_team, mine.name)
    assert moved["revision"] == 2
    assert mine.chosen(scope=mine.room)[:2] == ("web", "deployment")
    kept = answered(mine.client.get(f"{SESSIONS}/{before['id']}"))
    assert (kept["image"], kept["trail"], kept["scope"]) == (before["image"], before["trail"], mine.room)


def test_no_scope_stands_below_itself(mine: Tenant) -> None:
    admin = mine.house.admin
    for name, parent in ((mine.org, mine.room), (mine.org, mine.org)):
        refused(admin.put(f"{SCOPES}/{name}", json={"parent": parent}), 400, "invalid_body", "parent")
    refused(admin.put(f"{SCOPES}/{mine.room}", json={"project": None}), 409, "name_taken", "project")
    refused(admin.put(f"{SCOPES}/room:q", json={"parent": "room:none"}), 400, "scope_unknown", "parent")
    moves = [(f"a:{mine.name}", f"b:{mine.name}"), (f"b:{mine.name}", f"a:{mine.name}")]
    for name, _ in moves:
        mine.scope(name)
    answers = _at_once(*(lambda it=it: admin.put(f"{SCOPES}/{it[0]}", json={"parent": it[1]}) for it in moves))
    assert sorted(it.status_code for it in answers) == [200, 400]


def test_a_path_has_an_end(mine: Tenant) -> None:
    above = mine.room
    for number in range(13):
        above = mine.scope(f"s:{mine.name}-{number}", above, mine.name)["name"]
    body = {"parent": above, "project": mine.name}
    refused(mine.house.admin.put(f"{SCOPES}/s:{mine.name}-more", json=body), 400, "invalid_body", "parent")
    top = mine.scope(f"top:{mine.name}")["name"]
    refused(mine.house.admin.put(f"{SCOPES}/{mine.org}", json={"parent": top}), 409, "limit_reached", "parent")
    assert mine.chosen(scope=above)[0] == "web"


def test_two_writers_of_one_binding_at_once_never_overwrite_unseen(mine: Tenant) -> None:
    path = f"{BINDINGS}/scope:{mine.room}"
    admin = [mine.house.client(mine.house.admin_key) for _ in range(4)]
    for expected in range(3):
        body = {"runtime_image_id": "other", "expected_revision": expected}
        answers = _at_once(*(lambda it=it, body=body: it.put(path, json=body) for it in admin))
        assert sorted(it.status_code for it in answers) == [200, 409, 409, 409]
    answers = _at_once(*(lambda it=it: it.put(path, json={"runtime_image_id": "web"}) for it in admin))
    assert sorted(answered(it)["revision"] for it in answers) == [4, 5, 6, 7]


def test_a_scope_is_forgotten_while_sessions_use_it(mine: Tenant) -> None:
    admin, session = mine.house.admin, answered(mine.create(scope=mine.room), 201)
    mine.bind(f"scope:{mine.room}", "other")
    error = refused(admin.delete(f"{SCOPES}/{mine.room}"), 409, "in_use")
    assert error["details"] == {"by": ["bindings"]}
    assert refused(admin.delete(f"{SCOPES}/{mine.team}"), 409, "in_use")["details"] == {"by": [mine.room]}
    assert admin.delete(f"{BINDINGS}/scope:{mine.room}").status_code == 204
    held = mine.key(scope=mine.room)
    refused(admin.delete(f"{SCOPES}/{mine.room}"), 409, "in_use")
    key = answered(admin.get(f"{CORE}/projects/{mine.name}/keys"))["items"]
    for it in key:
        if it["scope"]:
            assert admin.delete(f"{CORE}/projects/{mine.name}/keys/{it['id']}").status_code == 204
    refused(mine.create(held), 401, "invalid_api_key")
    assert admin.delete(f"{SCOPES}/{mine.room}").status_code == 204
    refused(mine.create(scope=mine.room), 400, "scope_unknown", "scope")
    assert answered(mine.client.get(f"{SESSIONS}/{session['id']}"))["scope"] == mine.room
    refused(admin.delete(f"{SCOPES}/{mine.room}"), 404, "scope_unknown")


def test_a_key_is_held_to_what_there_is(mine: Tenant, theirs: Tenant) -> None:
    path = f"{CORE}/projects/{mine.name}/keys"
    for scope in ("room:none", theirs.room):
        refused(mine.house.admin.post(path, json={"name": "k", "scope": scope}), 400, "scope_unknown", "scope")
    for agents in ([], ["a b"]):
        response = mine.house.admin.post(path, json={"name": "k", "agents": agents})
        assert answered(response, 400)["error"]["param"].startswith("agents")


def test_only_the_deployment_enforces_at_the_deployment(mine: Tenant) -> None:
    admin = mine.house.admin
    refused(admin.put(f"{BINDINGS}/deployment", json={"runtime_image_id": "web"}), 400, "invalid_body", "mode")
    for subject in ("deployments", "scope", "agent:x", f"agent:{mine.name}:a b", "image:web"):
        response = admin.put(f"{BINDINGS}/{subject}", json={"runtime_image_id": "web"})
        assert answered(response, response.status_code)["error"]["code"] in (
            "invalid_body",
            "scope_unknown",
            "not_found",
        )
    mine.bind("deployment", "other", mode="enforce")
    try:
        assert mine.chosen()[:2] == ("other", "deployment")
        refused(mine.create(runtime_image_id="web"), 403, "image_enforced", "runtime_image_id")
    finally:
        assert admin.delete(f"{BINDINGS}/deployment").status_code == 204
    assert mine.chosen()[:2] == ("web", "deployment")


def test_every_write_is_audited_with_who_and_what(mine: Tenant) -> None:
    subject = f"scope:{mine.team}"
    mine.bind(subject, "other", reason="because")
    answered(mine.house.admin.put(f"{OVERRIDES}/{subject}", json={"override": "deny"}))
    answered(mine.house.admin.put(f"{LISTS}/{subject}", json={"everything": True}))
    assert mine.house.admin.delete(f"{BINDINGS}/{subject}").status_code == 204
    assert mine.audited(subject) == [
        ("binding.delete", "done"),
        ("allow_list.put", "done"),
        ("override.put", "done"),
        ("binding.put", "done"),
    ]
    entry = answered(mine.house.admin.get(f"{CORE}/audit", params={"subject": subject}))["items"][-1]
    assert entry["principal"] == "local administrator"
    assert entry["details"]["before"] is None
    assert (entry["details"]["after"]["reference"], entry["details"]["after"]["written"]["reason"]) == (
        "other",
        "because",
    )


@pytest.mark.parametrize("path, item", [(BINDINGS, "runtime_image_id"), (LISTS, "images"), (OVERRIDES, "override")])
def test_lists_come_in_pages(mine: Tenant, path: str, item: str) -> None:
    said = {"runtime_image_id": "other", "images": ["web"], "override": "allow"}
    subjects = [f"project:{mine.name}", f"scope:{mine.org}", f"scope:{mine.room}"]
    for subject in subjects:
        answered(mine.house.admin.put(f"{path}/{subject}", json={item: said[item]}))
    seen, after = list[str](), None
    while True:
        params = {"limit": "1"} | ({} if after is None else {"after": after})
        page = answered(mine.house.admin.get(path, params=params))
        seen += [it["subject"] for it in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert set(subjects) <= set(seen)
    assert len(seen) == len(set(seen))


def _at_once(*calls: Any) -> list[httpx.Response]:
    answers: list[httpx.Response] = []
    threads = [threading.Thread(target=lambda call=call: answers.append(call())) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
