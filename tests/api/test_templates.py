"""Templates through the API: written only when a Session of them could be made, and frozen with each Session."""

import base64
from typing import Any

import pytest

from sandbay.app.core import Settings
from sandbay.domain.inline import FILES, INLINE_BYTES
from sandbay.domain.reasons import Reason
from sandbay.domain.session import SessionState
from sandbay.ports.store import FrozenTemplateOf, Sessions
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Json, Served, answered, refused
from tests.app.world import eventually

TEMPLATES = V1 + "/environments/templates"
SKILL = "---\nname: cook\ndescription: Cooks.\nrequires: [node>=20]\n---\nStir.\n"
FULL: Json = {
    "runtime_image_id": "web",
    "platform": None,
    "env": {"A": "1"},
    "files": [
        {"path": "./a/b.txt", "content": "ü"},
        {"path": "/workspace/run", "encoding": "base64", "content": "AP8=", "executable": True},
    ],
    "packages": {"npm": ["left@^1.2"], "python": ["right[x]>=2,<3"]},
    "plugins": [{"files": [{"path": "plugin.json", "content": '{"name": "plug"}'}]}],
    "setup_commands": ["echo hello", ["true", "-x"]],
    "network": "disabled",
    "setup_network": "disabled",
}


def make(served: Served, name: str = "work", **said: Any) -> Json:
    return answered(served.project.post(TEMPLATES, json={"name": name, **said}), 201)


def variables(served: Served, session: Json) -> list[str]:
    ran = answered(served.project.post(f"{SESSIONS}/{session['id']}/exec", json={"argv": ["env"]}))
    return base64.b64decode(ran["stdout"]).decode().splitlines()


def test_a_template_from_create_to_delete(served: Served) -> None:
    served.image("web")
    made = make(served, **FULL)
    assert made == answered(served.project.get(f"{TEMPLATES}/work"))
    assert made == answered(served.project.get(f"{TEMPLATES}/{made['id']}"))
    assert made == answered(served.admin.get(f"{CORE}/projects/default/environment-templates/work"))
    assert made["id"].startswith("tmp_")
    assert (made["revision"], made["runtime_image_id"], made["image"]["name"]) == (1, "web", "web")
    assert made["image"]["decided_by"] == {"level": "template", "subject": "work"}
    assert made["files"] == [
        {"path": "a/b.txt", "size": 2, "encoding": "utf-8", "content": "ü", "executable": False},
        {"path": "run", "size": 2, "encoding": "base64", "content": "AP8=", "executable": True},
    ]
    for same in ("packages", "setup_commands", "network", "setup_network", "env"):
        assert made[same] == FULL[same]
    listed = answered(served.project.get(TEMPLATES))["items"]
    assert [file["content"] for file in listed[0]["files"]] == [None, None]
    assert listed == answered(served.admin.get(f"{CORE}/projects/default/environment-templates"))["items"]
    assert served.project.delete(f"{TEMPLATES}/work", params={"expected_revision": 1}).status_code == 204
    refused(served.project.get(f"{TEMPLATES}/work"), 404, "template_unknown")
    trail = answered(served.admin.get(f"{CORE}/audit", params={"subject": made["id"]}))["items"]
    assert [entry["action"] for entry in trail] == ["template.delete", "template.create"]


@pytest.mark.produces(Reason.REVISION_STALE)
def test_omitted_keeps_and_null_clears(served: Served) -> None:
    served.image("web")
    made = make(served, **FULL)
    path = f"{TEMPLATES}/work"
    changed = answered(served.project.patch(path, json={"env": {"B": "2"}, "expected_revision": 1}))
    moving = {"revision": 2, "updated_at": changed["updated_at"]}
    assert changed == {**made, "env": {"B": "2"}, **moving}
    refused(
        served.project.patch(path, json={"env": None, "expected_revision": 1}),
        409,
        "revision_stale",
        "expected_revision",
    )
    kept = answered(served.project.patch(path, json={"packages": {"npm": None}}))
    assert kept["packages"] == {"npm": [], "python": FULL["packages"]["python"]}
    nulls = dict.fromkeys(FULL)
    cleared = answered(served.project.patch(path, json=nulls))
    empty: Json = {"env": {}, "files": [], "plugins": [], "setup_commands": [], "packages": {"npm": [], "python": []}}
    assert {name: cleared[name] for name in FULL} == {**nulls, **empty}
    assert cleared["image"]["decided_by"] == {"level": "deployment", "subject": None}
    renamed = answered(served.project.patch(path, json={"name": "play"}))
    assert (renamed["name"], renamed["revision"]) == ("play", 5)


REFUSED: list[tuple[Json, int, str, str | None]] = [
    ({"runtime_image_id": "nope"}, 400, "image_unknown", "runtime_image_id"),
    ({"runtime_image_id": "web:9"}, 400, "release_unknown", "runtime_image_id"),
    ({"runtime_image_id": "We b"}, 400, "invalid_reference", "runtime_image_id"),
    ({"runtime_image_id": "web", "platform": "linux/s390x"}, 400, "image_unsupported", "runtime_image_id"),
    ({"platform": "amd64"}, 400, "invalid_body", "platform"),
    ({"network": "enabled"}, 422, "network_unsupported", "network"),
    ({"setup_network": "enabled"}, 422, "network_unsupported", "setup_network"),
    ({"packages": {"npm": ["left"]}}, 422, "network_unsupported", "packages"),
    ({"packages": {"system": None}}, 400, "invalid_body", "packages.system"),
    ({"packages": {"system": []}}, 400, "invalid_body", "packages.system"),
    ({"packages": {"npm": ["--global"], "system": ["x"]}}, 400, "invalid_body", "packages.system"),
    ({"packages": {"npm": ["left", "--registry"]}}, 400, "invalid_body", "packages.npm.1"),
    ({"packages": {"python": ["x @ file:///x"]}}, 400, "invalid_body", "packages.python.0"),
    ({"files": [{"path": "../x", "content": ""}]}, 400, "invalid_body", "files.0.path"),
    ({"files": [{"path": "x", "content": "?", "encoding": "base64"}]}, 400, "invalid_body", "files.0.content"),
    ({"files": [{"path": "x", "content": ""}] * 2}, 400, "invalid_body", "files"),
    ({"files": [{"path": ".sandbay/x", "content": ""}]}, 400, "invalid_body", "files.0"),
    ({"skills": [{"files": [{"path": "x.md", "content": SKILL}]}]}, 400, "invalid_body", "skills.0"),
    ({"skills": [{"files": [{"path": "SKILL.md", "content": SKILL}]}] * 2}, 400, "invalid_body", "skills.1"),
    ({"plugins": [{"files": [{"path": "plugin.json", "content": "{}"}]}]}, 400, "invalid_body", "plugins.0"),
    ({"setup_commands": [[]]}, 400, "invalid_body", "setup_commands.0"),
    ({"setup_commands": [{"argv": []}]}, 400, "invalid_body", "setup_commands.0"),
    ({"name": "No Slug"}, 400, "invalid_body", "name"),
]


@pytest.mark.parametrize("body, status, code, param", REFUSED)
def test_refused_by_name_and_nothing_is_written(
    shared: Served, body: Json, status: int, code: str, param: str | None
) -> None:
    before = answered(shared.project.get(TEMPLATES))
    refused(shared.project.post(TEMPLATES, json={"name": "bad", **body}), status, code, param)
    assert answered(shared.project.get(TEMPLATES)) == before
    good = make(shared, "good")
    try:
        refused(shared.project.patch(f"{TEMPLATES}/good", json=body), status, code, param)
        assert answered(shared.project.get(f"{TEMPLATES}/good")) == good
    finally:
        shared.project.delete(f"{TEMPLATES}/good")


def test_what_was_refused_is_audited(shared: Served) -> None:
    shared.project.post(TEMPLATES, json={"name": "audited", "runtime_image_id": "nope"})
    entry = answered(shared.admin.get(f"{CORE}/audit", params={"subject": "audited"}))["items"][0]
    assert (entry["action"], entry["outcome"]) == ("template.create", "image_unknown")


def test_limits_are_told(shared: Served) -> None:
    many = [{"path": f"f{n}", "content": ""} for n in range(FILES + 1)]
    error = refused(shared.project.post(TEMPLATES, json={"name": "x", "files": many}), 400, "invalid_body", "files")
    assert str(FILES) in error["message"]
    big = base64.b64encode(bytes(INLINE_BYTES // 2 + 1)).decode()
    pair = [{"path": name, "content": big, "encoding": "base64"} for name in ("a", "b")]
    error = refused(shared.project.post(TEMPLATES, json={"name": "x", "files": pair}), 400, "invalid_body", "files")
    assert str(INLINE_BYTES) in error["message"]


@pytest.mark.produces(Reason.NAME_TAKEN, Reason.LIMIT_REACHED)
def test_names_and_number(tmp_path: Any) -> None:
    served = Served(tmp_path, Settings(templates=2))
    try:
        served.image("web")
        first, _ = make(served, "a"), make(served, "b")
        refused(served.project.patch(f"{TEMPLATES}/b", json={"name": "a"}), 409, "name_taken", "name")
        error = refused(served.project.post(TEMPLATES, json={"name": "a"}), 409, "name_taken", "name")
        assert error["details"] == {"template": first["id"]}
        refused(served.project.post(TEMPLATES, json={"name": "c"}), 409, "limit_reached")
        other = served.new_project("other")
        assert answered(other.post(TEMPLATES, json={"name": "a"}), 201)["id"] != first["id"]
    finally:
        served.close()


@pytest.mark.produces(Reason.TEMPLATE_UNKNOWN)
def test_another_projects_template_is_as_none(served: Served) -> None:
    served.image("web")
    made = make(served)
    other = served.new_project("other")
    for wanted in ("work", made["id"]):
        refused(other.get(f"{TEMPLATES}/{wanted}"), 404, "template_unknown")
        refused(other.patch(f"{TEMPLATES}/{wanted}", json={"env": None}), 404, "template_unknown")
        refused(other.delete(f"{TEMPLATES}/{wanted}"), 404, "template_unknown")
        refused(other.post(SESSIONS, json={"template": wanted}), 400, "template_unknown", "template")
        refused(other.post(f"{V1}/explain", json={"template": wanted}), 400, "template_unknown", "template")
    assert answered(other.get(TEMPLATES))["items"] == []


def test_pages_are_by_name(shared: Served) -> None:
    for name in ("c", "a", "b"):
        make(shared, f"page-{name}")
    first = answered(shared.project.get(TEMPLATES, params={"limit": 2}))
    second = answered(shared.project.get(TEMPLATES, params={"limit": 2, "after": first["next"]}))
    assert [it["name"] for it in [*first["items"], *second["items"]]] == ["page-a", "page-b", "page-c"]
    assert second["next"] is None
    for name in ("c", "a", "b"):
        shared.project.delete(f"{TEMPLATES}/page-{name}")


def test_without_a_pool_support_is_unchecked_and_said(tmp_path: Any) -> None:
    served = Served(tmp_path, node=False)
    try:
        answered(served.admin.post(IMAGES, json={"name": "web"}), 201)
        served.register("web", "web")
        error = refused(
            served.project.post(TEMPLATES, json={"name": "x", "runtime_image_id": "web"}),
            409,
            "release_pending",
            "runtime_image_id",
        )
        assert error["details"]["reference"] == "web"
        refused(served.project.post(TEMPLATES, json={"name": "x"}), 409, "no_default_image")
    finally:
        served.close()


def test_a_session_takes_its_template(served: Served) -> None:
    served.image("web")
    served.image("other")
    made = make(served, runtime_image_id="other", env={"A": "t", "B": "t"})
    session = served.session(template="work", env={"A": "s"})
    assert (session["image"]["name"], session["image"]["decided_by"]["level"]) == ("other", "template")
    assert session["template"] == {"id": made["id"], "name": "work", "revision": 1}
    assert [step["level"] for step in session["trail"]] == ["session", "template", "project", "deployment"]
    assert {"A=s", "B=t"} <= set(variables(served, session))
    own = served.session(template=made["id"], runtime_image_id="web")
    assert (own["image"]["name"], own["image"]["decided_by"]["level"]) == ("web", "session")
    assert own["trail"][1]["outcome"] == "overruled"


def test_a_templates_fault_points_at_the_template(served: Served) -> None:
    served.image("web")
    served.image("other")
    make(served, runtime_image_id="other")
    answered(served.admin.patch(f"{IMAGES}/other", json={"state": "retired"}))
    for asked in (SESSIONS, f"{V1}/explain"):
        response = served.project.post(asked, json={"template": "work"})
        error = response.json()["error"] if asked == SESSIONS else answered(response)["refusal"]
        assert (error["code"], error["param"], error["details"]["field"]) == (
            "image_retired",
            "template",
            "runtime_image_id",
        )
    shown = answered(served.project.get(f"{TEMPLATES}/work"))
    assert (shown["image"], shown["refusal"]["code"]) == (None, "image_retired")
    error = refused(served.project.patch(f"{TEMPLATES}/work", json={"env": None}), 409, "image_retired")
    assert error["details"]["field"] == "runtime_image_id"
    assert served.session()["image"]["name"] == "web"


def test_a_network_that_no_pool_gives_points_at_whose_word_it_is(served: Served) -> None:
    served.image("web")
    make(served)
    refused(
        served.project.post(SESSIONS, json={"template": "work", "network": "enabled"}),
        422,
        "network_unsupported",
        "network",
    )
    assert served.session(template="work")["network"] == "disabled"


@pytest.mark.produces(Reason.IDEMPOTENCY_CONFLICT)
def test_editing_or_deleting_a_template_alters_no_session(served: Served) -> None:
    served.image("web")
    make(served, env={"A": "1"}, files=[{"path": "f", "content": "old"}])
    key = {"Idempotency-Key": "one"}
    body: Json = {"template": "work", "wait_seconds": 60, "files": [{"path": "g", "content": "own"}]}
    session = served.until_running(answered(served.project.post(SESSIONS, json=body, headers=key), 201))
    record = served.core.store.read(Sessions())[0]
    assert record.session.template_digest is not None
    kept = served.core.store.read(FrozenTemplateOf(record.session.template_digest))
    answered(served.project.patch(f"{TEMPLATES}/work", json={"env": {"A": "2"}, "files": None}))
    served.project.delete(f"{TEMPLATES}/work")
    again = answered(served.project.post(SESSIONS, json=body, headers=key), 200)
    assert (again["id"], again["template"]) == (session["id"], session["template"])
    refused(
        served.project.post(SESSIONS, json={**body, "files": []}, headers=key),
        409,
        "idempotency_conflict",
        "Idempotency-Key",
    )
    assert served.core.store.read(FrozenTemplateOf(record.session.template_digest)) == kept
    assert "A=1" in variables(served, session)
    eventually(lambda: served.core.store.read(Sessions())[0].session.state is SessionState.RUNNING)


def test_the_requests_files_must_not_be_in_the_way(served: Served) -> None:
    served.image("web")
    make(served, files=[{"path": "a", "content": ""}])
    body = {"template": "work", "files": [{"path": "a/b", "content": ""}]}
    refused(served.project.post(SESSIONS, json=body), 400, "invalid_body", "files")


@pytest.mark.produces(Reason.SETUP_FAILED)
def test_a_setup_that_fails_fails_the_session_and_says_where(served: Served) -> None:
    served.image("web")
    make(served, files=[{"path": "a", "content": "x"}], setup_commands=["echo out; exit 3"])
    made = answered(served.project.post(SESSIONS, json={"template": "work", "wait_seconds": 60}), 201)
    failed = made
    while failed["status"] in ("waiting", "starting"):
        failed = answered(
            served.project.get(f"{SESSIONS}/{made['id']}", params={"wait": 5, "status": failed["status"]})
        )
    assert (failed["status"], failed["reason"]["code"]) == ("failed", "setup_failed")
    details = failed["reason"]["details"]
    assert (details["step"], details["steps"], details["exit_code"], details["output"]) == (2, 2, 3, "out\n")
    assert served.session()["image"]["name"] == "web"


def test_a_create_answers_when_the_setup_begins_and_tells_how_far_it_is(served: Served) -> None:
    served.image("web")
    make(served, setup_commands=["echo here; sleep 60"])
    made = answered(served.project.post(SESSIONS, json={"template": "work", "wait_seconds": 60}), 201)
    path = f"{SESSIONS}/{made['id']}"
    eventually(lambda: (answered(served.project.get(path))["progress"] or {}).get("output") == "here\n")
    seen = answered(served.project.get(path))
    told = {name: seen["progress"][name] for name in ("phase", "step", "steps", "doing", "bytes_done")}
    assert told == {"phase": "setup", "step": 1, "steps": 1, "doing": "echo here; sleep 60", "bytes_done": None}
    assert seen["status"] == "starting"
    refused(served.project.post(f"{path}/exec", json={"argv": ["true"]}), 409, "not_running")
    assert served.project.delete(path).status_code in (200, 202)
    eventually(lambda: answered(served.project.get(path))["status"] == "ended")


def test_requirements_of_templates_and_skills(served: Served) -> None:
    served.image("web")
    unmet = {"requires": ["git>=2"]}
    error = refused(
        served.project.post(TEMPLATES, json={"name": "work", **unmet}), 400, "requirements_unmet", "requires"
    )
    assert (error["details"]["tool"], error["details"]["found"]) == ("git", "unknown")
    skill = {"skills": [{"files": [{"path": "SKILL.md", "content": SKILL}]}]}
    error = refused(
        served.project.post(TEMPLATES, json={"name": "work", **skill}), 400, "requirements_unmet", "skills.0"
    )
    assert error["details"]["tool"] == "node"
    refused(
        served.project.post(TEMPLATES, json={"name": "x", "requires": ["git of us"]}), 400, "invalid_body", "requires.0"
    )
    assert answered(served.project.get(TEMPLATES))["items"] == []
