"""Suspend and resume over HTTP: the same release whatever has changed, and every "no" by its name."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sandbay.app.sessions import find_session
from sandbay.domain.declaration import Ability
from sandbay.domain.ids import SessionId
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault
from sandbay.ports.changes import PutReadiness, SeeNode
from sandbay.ports.store import Nodes
from tests.api.served import CORE, IMAGES, SESSIONS, Json, Served, answered, refused
from tests.app.world import NODE, SLOTS, eventually
from tests.fakes.memory_provider import DECLARATION


def path(session: Json) -> str:
    return f"{SESSIONS}/{session['id']}"


def reached(served: Served, session: Json, status: str) -> Json:
    eventually(lambda: answered(served.project.get(path(session)))["status"] == status)
    return answered(served.project.get(path(session)))


def suspended(served: Served, **asked: object) -> Json:
    session = served.session(runtime_image_id="web", **asked)
    assert served.project.post(f"{path(session)}/suspend").status_code in (200, 202)
    return reached(served, session, "suspended")


def of(served: Served) -> str:
    (sandbox,) = served.world.node.sandboxes.values()
    return sandbox.files.read("/etc/image").read().decode()


def test_it_resumes_on_its_release_whatever_has_changed_and_the_default_beside_runs(served: Served) -> None:
    served.image("plain")
    served.image("web", "old")
    session = served.session(runtime_image_id="web")
    image, which = session["image"], of(served)
    assert served.project.put(f"{path(session)}/files/content?path=notes", content=b"mine").status_code == 204
    assert answered(served.project.post(f"{path(session)}/suspend"), 202)["status"] in ("suspending", "suspended")
    assert reached(served, session, "suspended")["image"] == image
    served.image("web", "new")
    answered(served.admin.patch(f"{IMAGES}/web", json={"state": "retired"}))
    retired = served.project.post(SESSIONS, json={"runtime_image_id": "web"})
    refused(retired, 409, "image_retired", "runtime_image_id")
    beside = served.session(runtime_image_id="plain")
    answered(served.project.delete(path(beside)), 202)
    eventually(lambda: not served.world.node.sandboxes)
    assert answered(served.project.post(f"{path(session)}/resume"), 202)["status"] in ("resuming", "running")
    assert reached(served, session, "running")["image"] == image
    assert of(served) == which
    assert served.project.get(f"{path(session)}/files/content?path=notes").content == b"mine"
    answered(served.project.post(f"{path(session)}/resume"), 200)
    answered(served.project.delete(path(session)), 202)
    reached(served, session, "ended")


@pytest.mark.produces(Reason.NOT_SUSPENDED, Reason.ALREADY_ENDED)
def test_what_cannot_be_is_told_by_name(served: Served) -> None:
    served.image("web")
    session = suspended(served)
    assert answered(served.project.post(f"{path(session)}/suspend"), 200)["status"] == "suspended"
    answered(served.project.delete(path(session)), 200)
    for verb in ("suspend", "resume"):
        refused(served.project.post(f"{path(session)}/{verb}"), 409, "already_ended")
        refused(served.project.post(f"{SESSIONS}/ses_00000000000000000000/{verb}"), 404, "not_found")
        other = served.new_project(f"other-{verb}")
        refused(other.post(f"{path(session)}/{verb}"), 404, "not_found")
    body = {"runtime_image_id": "web:9", "wait_seconds": 60}
    assert served.project.post(SESSIONS, json=body).status_code == 400
    for _ in range(SLOTS):
        served.session(runtime_image_id="web")
    waiting = answered(served.project.post(SESSIONS, json={"runtime_image_id": "web", "wait_seconds": 60}), 201)
    assert waiting["status"] == "waiting"
    said = refused(served.project.post(f"{path(waiting)}/resume"), 409, "not_suspended")
    assert said["details"] == {"status": "waiting"}
    refused(served.project.post(f"{path(waiting)}/suspend"), 409, "not_running")


@pytest.mark.produces(Reason.NO_CAPACITY)
def test_its_place_may_be_somebody_elses_meanwhile(served: Served) -> None:
    served.image("web")
    session = suspended(served)
    others = [served.session(runtime_image_id="web") for _ in range(SLOTS)]
    full = served.project.post(f"{path(session)}/resume")
    refused(full, 503, "no_capacity")
    assert full.headers["retry-after"] == "5"
    answered(served.project.delete(path(others[0])), 202)
    eventually(lambda: served.project.post(f"{path(session)}/resume").status_code in (200, 202))
    reached(served, session, "running")


@pytest.mark.produces(Reason.SNAPSHOT_NODE_OFFLINE, Reason.IMAGE_LOST)
def test_a_node_that_is_away_and_bytes_that_are_gone_are_two_things(served: Served) -> None:
    served.image("web")
    session = suspended(served)
    served.running.agent.close()
    (node,) = served.core.store.read(Nodes())
    long_ago = served.core.clock.now() - timedelta(minutes=5)
    served.core.store.apply(SeeNode(NODE, node.epoch, long_ago, warm=True))
    refused(served.project.post(f"{path(session)}/resume"), 503, "snapshot_node_offline")
    served.core.store.apply(SeeNode(NODE, node.epoch, served.core.clock.now(), warm=True))
    key = find_session(served.core, SessionId(session["id"]), None).frozen.content_key
    gone = Readiness(ReadinessState.FAILED, wanted=True, attempt=9, fault=Fault(Reason.BLOB_MISSING, "it is gone"))
    served.core.store.apply(PutReadiness(NODE, node.epoch, key, gone, None))
    lost = refused(served.project.post(f"{path(session)}/resume"), 503, "image_lost")
    assert lost["details"] == {"last": "blob_missing"}
    assert answered(served.project.get(path(session)))["status"] == "suspended", "and it is kept"


@pytest.fixture
def unable(tmp_path: Path) -> Iterator[Served]:
    """An installation whose provider cannot suspend."""
    it = Served(tmp_path, declaration=replace(DECLARATION, abilities=DECLARATION.abilities - {Ability.SUSPEND}))
    try:
        yield it
    finally:
        it.close()


@pytest.mark.produces(Reason.ABILITY_UNSUPPORTED)
def test_a_provider_that_cannot_says_so_and_nothing_happens(unable: Served) -> None:
    unable.image("web")
    session = unable.session(runtime_image_id="web")
    refused(unable.project.post(f"{path(session)}/suspend"), 422, "ability_unsupported")
    assert answered(unable.project.get(path(session)))["status"] == "running"
    audit = answered(unable.admin.get(f"{CORE}/audit"))["items"]
    assert ("session.suspend", "ability_unsupported") in {(it["action"], it["outcome"]) for it in audit}
