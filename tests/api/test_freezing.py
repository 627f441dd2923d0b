"""What a Session is admitted with, it keeps: whatever is written afterwards, on both databases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbay.adapters.store.postgresql import PostgresqlStore
from sandbay.domain.ids import SessionId
from sandbay.ports.store import FrozenTemplateOf, SessionOf, Sessions
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Json, Served, answered, refused

SANDBOX, TEMPLATES = f"{CORE}/sandbox", f"{V1}/environments/templates"
WISH = {"template": "work", "scope": "room:a", "agent": "coder", "wait_seconds": 60}
ONCE = {"Idempotency-Key": "once"}


@pytest.fixture(params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """Images `web` (the default) and `other`, of two releases each; a Template, a scope and an agent of `other`."""
    on_postgresql = request.param == "postgresql"
    store = PostgresqlStore(request.getfixturevalue("postgres").emptied()) if on_postgresql else None
    it = Served(tmp_path, store=store)
    try:
        for name in ("web", "other"):
            it.image(name, promote="stable")
            it.image(name, f"{name}-two")
        answered(it.deploy(default_image="web"))
        answered(it.admin.put(f"{SANDBOX}/scopes/team:a", json={"project": "default"}))
        answered(it.admin.put(f"{SANDBOX}/scopes/room:a", json={"project": "default", "parent": "team:a"}))
        answered(it.admin.put(f"{SANDBOX}/bindings/scope:team:a", json={"runtime_image_id": "other"}))
        content = {"name": "work", "env": {"A": "1"}, "files": [{"path": "a.txt", "content": "one"}]}
        answered(it.project.post(TEMPLATES, json=content), 201)
        yield it
    finally:
        it.close()


def kept(house: Served, session: str) -> tuple[Json, Any, Any]:
    """All that anybody can see of it that is not its state: the view, the rows, the Template's bytes."""
    view = answered(house.project.get(f"{SESSIONS}/{session}"))
    record = house.core.store.read(SessionOf(SessionId(session)))
    assert record is not None
    digest = record.session.template_digest
    template = None if digest is None else house.core.store.read(FrozenTemplateOf(digest))
    frozen = (record.frozen.document, record.session.frozen, record.session.frozen_digest)
    of_allocation = record.allocation and (record.allocation.frozen, record.allocation.frozen_digest)
    return view, (frozen, of_allocation), template and template.document


LATER: dict[str, Callable[[Served], httpx.Response]] = {
    "the channel moves": lambda it: it.admin.put(f"{IMAGES}/other/channels/stable", json={"release": 2}),
    "the Template changes": lambda it: it.project.patch(
        f"{TEMPLATES}/work", json={"env": {"A": "2"}, "files": None, "runtime_image_id": "web"}
    ),
    "the Template goes": lambda it: it.project.delete(f"{TEMPLATES}/work"),
    "the binding changes": lambda it: it.admin.put(
        f"{SANDBOX}/bindings/scope:team:a", json={"runtime_image_id": "web", "mode": "enforce"}
    ),
    "the binding goes": lambda it: it.admin.delete(f"{SANDBOX}/bindings/scope:team:a"),
    "the project prefers": lambda it: it.project.patch(f"{V1}/project", json={"runtime_image_id": "web"}),
    "the default changes": lambda it: it.deploy(default_image="other"),
    "nothing is allowed": lambda it: it.admin.put(f"{SANDBOX}/allow-lists/scope:team:a", json={}),
    "no wish is allowed": lambda it: it.admin.put(f"{SANDBOX}/overrides/deployment", json={"override": "deny"}),
    "the image is restricted": lambda it: it.admin.patch(f"{IMAGES}/other", json={"tier": "restricted"}),
    "the default is the other again": lambda it: it.deploy(default_image="web"),
    "the image is retired": lambda it: it.admin.patch(f"{IMAGES}/other", json={"state": "retired"}),
    "the scope moves": lambda it: it.admin.put(f"{SANDBOX}/scopes/room:a", json={"project": "default"}),
    "the scope goes": lambda it: it.admin.delete(f"{SANDBOX}/scopes/room:a"),
}


def test_nothing_that_is_written_later_alters_a_session(house: Served) -> None:
    made = answered(house.project.post(SESSIONS, json=WISH, headers=ONCE), 201)
    made = house.until_running(made)
    assert (made["image"]["name"], made["image"]["release"]) == ("other", 1)
    assert made["image"]["decided_by"] == {"level": "scope", "subject": "team:a"}
    before = kept(house, made["id"])
    assert before[2] is not None
    for what, write in LATER.items():
        assert write(house).is_success, what
        assert kept(house, made["id"]) == before, what
        again = answered(house.project.post(SESSIONS, json=WISH, headers=ONCE))
        assert again["id"] == made["id"], what
    refused(house.project.post(SESSIONS, json=WISH), 400, "template_unknown", "template")
    response = house.project.post(SESSIONS, json={**WISH, "agent": "writer"}, headers=ONCE)
    assert refused(response, 409, "idempotency_conflict", "Idempotency-Key")["details"] == {"session": made["id"]}


def test_a_retry_answers_with_a_session_that_failed(house: Served) -> None:
    house.world.node.knobs.boots = {"image_manifest_digest": "sha256:" + "0" * 64}
    first = answered(house.project.post(SESSIONS, json=WISH, headers=ONCE), 201)
    assert (first["status"], first["reason"]["code"]) == ("failed", "image_mismatch")
    house.world.node.knobs.boots = None
    answered(house.admin.patch(f"{IMAGES}/other", json={"state": "retired"}))
    assert answered(house.project.post(SESSIONS, json=WISH, headers=ONCE)) == first


def test_a_refused_admission_leaves_nothing_and_its_key_unused(house: Served) -> None:
    path = f"{SANDBOX}/allow-lists/scope:room:a"
    answered(house.admin.put(path, json={"images": ["web"]}))
    for wish, code in ((WISH, "image_not_allowed"), ({**WISH, "scope": "room:none"}, "scope_unknown")):
        response = house.project.post(SESSIONS, json=wish, headers=ONCE)
        assert answered(response, response.status_code)["error"]["code"] == code
    assert house.core.store.read(Sessions()) == ()
    node = answered(house.admin.get(f"{SANDBOX}/nodes"))["items"][0]
    assert node["active"] == 0
    assert house.admin.delete(path).status_code == 204
    made = answered(house.project.post(SESSIONS, json=WISH, headers=ONCE), 201)
    assert made["image"]["name"] == "other"
