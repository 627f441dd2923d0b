"""Images, releases, channels, the deployment and projects through the API."""

import io
import json
import tarfile
from datetime import datetime

import pytest

from sandbay.app.core import Settings
from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Served, answered, refused
from tests.app.world import eventually

DEPLOYMENT = f"{CORE}/sandbox/deployment"
NO_UPLOAD = "upl_00000000000000000000"


def test_an_image_from_upload_to_use(served: Served) -> None:
    release = served.image("web", source_commit="abc", promote="canary")
    assert release["number"] == 1
    assert (release["image"], release["state"], release["source_commit"]) == ("web", "active", "abc")
    variant = release["variants"][0]
    assert variant["digest"] == variant["artifacts"]["image_manifest_digest"]["value"]
    assert variant["image_id"] == variant["artifacts"]["image_id"]["value"]
    assert variant["config"]["cmd"] == ["/bin/true"]
    assert len(variant["layers"]) == 1
    image = answered(served.admin.get(f"{IMAGES}/web"))
    assert image["channels"] == {"stable": {"release": 1, "revision": 1}, "canary": {"release": 1, "revision": 1}}
    assert (image["releases"], image["default"], image["state"]) == ([1], True, "active")
    assert datetime.fromisoformat(image["created_at"]).utcoffset() is not None
    usable = answered(served.project.get(f"{V1}/images"))["items"]
    assert [(it["name"], it["channels"], it["default"]) for it in usable] == [("web", {"stable": 1, "canary": 1}, True)]
    readiness = answered(served.admin.get(f"{IMAGES}/web/readiness"))["items"]
    assert [(it["node"], it["release"], it["state"], it["pinned"]) for it in readiness] == [("n1", 1, "ready", True)]


def test_identical_content_is_the_release_there_is(served: Served) -> None:
    first = served.register("web", "web")
    body = {"source": {"upload": served.upload("web")}}
    again = answered(served.admin.post(f"{IMAGES}/web/releases", json=body), 200)
    assert again["id"] == first["id"]
    assert [it["number"] for it in answered(served.admin.get(f"{IMAGES}/web/releases"))["items"]] == [1]


@pytest.mark.produces(Reason.NAME_TAKEN, Reason.LIMIT_REACHED)
def test_names_and_limits(tmp_path_factory: pytest.TempPathFactory) -> None:
    served = Served(tmp_path_factory.mktemp("limits"), Settings(images=2, releases_per_image=1))
    try:
        served.register("web", "web")
        refused(served.admin.post(IMAGES, json={"name": "web"}), 409, "name_taken", "name")
        answered(served.admin.post(IMAGES, json={"name": "two"}), 201)
        error = refused(served.admin.post(IMAGES, json={"name": "three"}), 409, "limit_reached")
        assert error["details"] == {"limit": "images", "bound": 2}
        body = {"source": {"upload": served.upload("other")}}
        error = refused(served.admin.post(f"{IMAGES}/web/releases", json=body), 409, "limit_reached")
        assert error["details"] == {"limit": "releases_per_image", "bound": 1}
        refused(served.admin.post(f"{CORE}/projects", json={"name": "default"}), 409, "name_taken", "name")
    finally:
        served.close()


@pytest.mark.produces(Reason.IMAGE_UNKNOWN, Reason.CHANNEL_UNKNOWN, Reason.RELEASE_UNKNOWN, Reason.NOT_FOUND)
def test_what_is_not_there(shared: Served) -> None:
    get, post = shared.admin.get, shared.admin.post
    for path in ("", "/releases", "/releases/1", "/channels/stable", "/readiness"):
        refused(get(f"{IMAGES}/nope{path}"), 404, "image_unknown")
    refused(get(f"{IMAGES}/web/releases/9"), 404, "release_unknown")
    refused(get(f"{IMAGES}/web/channels/nope"), 404, "channel_unknown")
    refused(shared.admin.put(f"{IMAGES}/web/channels/a", json={"release": 9}), 404, "release_unknown")
    refused(post(f"{IMAGES}/web/releases", json={"source": {"upload": NO_UPLOAD}}), 404, "not_found", "source.upload")
    refused(post(f"{IMAGES}/web/preload", json={"node": "nope"}), 404, "not_found", "node")
    refused(get(f"{CORE}/projects/nope/keys"), 404, "not_found")
    refused(get(f"{CORE}/sandbox/sessions/ses_00000000000000000000"), 404, "not_found")


@pytest.mark.parametrize(
    "reference, code",
    [
        pytest.param("web:", "invalid_reference", marks=pytest.mark.produces(Reason.INVALID_REFERENCE)),
        ("other:1", "invalid_reference"),
        ("@default", "invalid_reference"),
        ("web:9", "release_unknown"),
        ("web@sha256:" + "0" * 64, "release_unknown"),
        ("rel_00000000000000000000", "release_unknown"),
        ("web:canary", "channel_unknown"),
    ],
)
def test_a_reference_to_nothing_of_this_image(shared: Served, reference: str, code: str) -> None:
    for action in ("evict", "preload"):
        response = shared.admin.post(f"{IMAGES}/web/{action}", json={"reference": reference})
        refused(response, 400, code, "reference")


@pytest.mark.produces(Reason.REVISION_STALE, Reason.RELEASE_RETIRED, Reason.IMAGE_RETIRED, Reason.IN_USE)
def test_channels_and_states(served: Served) -> None:
    put, patch = served.admin.put, served.admin.patch
    served.image("web", "one")
    served.image("web", "two")
    stable = f"{IMAGES}/web/channels/stable"
    shown = {"image": "web", "name": "stable", "release": 1, "revision": 1, "previous": None}
    assert answered(served.admin.get(stable)) == shown
    error = refused(
        put(stable, json={"release": 2, "expected_revision": 9}), 409, "revision_stale", "expected_revision"
    )
    assert error["details"] == {"current": 1}
    assert answered(put(stable, json={"release": 2, "expected_revision": 1, "why": "new"}))["release"] == 2
    error = refused(patch(f"{IMAGES}/web/releases/2", json={"state": "retired"}), 409, "in_use", "state")
    assert error["details"] == {"by": ["channel stable"]}
    assert answered(patch(f"{IMAGES}/web/releases/1", json={"state": "retired"}))["state"] == "retired"
    refused(put(stable, json={"release": 1}), 409, "release_retired", "release")
    refused(patch(f"{IMAGES}/web", json={"state": "retired"}), 409, "in_use", "state")
    served.image("two")
    retired = answered(patch(f"{IMAGES}/two", json={"state": "retired", "expected_revision": 1}))
    assert (retired["state"], retired["revision"]) == ("retired", 2)
    refused(
        patch(f"{IMAGES}/two", json={"description": "x", "expected_revision": 1}),
        409,
        "revision_stale",
        "expected_revision",
    )
    refused(put(f"{IMAGES}/two/channels/a", json={"release": 1}), 409, "image_retired")
    refused(served.project.post(SESSIONS, json={"runtime_image_id": "two"}), 409, "image_retired", "runtime_image_id")
    assert [it["name"] for it in answered(served.project.get(f"{V1}/images"))["items"]] == ["web"]


@pytest.mark.produces(Reason.RELEASE_PENDING, Reason.RELEASE_REJECTED)
def test_what_is_not_proved_cannot_be_had(served: Served) -> None:
    served.image("web")
    with served.world.node.knobs.holding_prepare():
        served.register("next", "next")
        refused(served.admin.put(f"{IMAGES}/next/channels/a", json={"release": 1}), 409, "release_pending", "release")
        refused(
            served.project.post(SESSIONS, json={"runtime_image_id": "next"}), 409, "release_pending", "runtime_image_id"
        )
        served.world.node.knobs.fail_prepare(Reason.MALFORMED_LAYER, times=9)
    eventually(lambda: served.release("next", 1)["state"] == "rejected")
    assert served.release("next", 1)["fault"]["code"] == "malformed_layer"
    refused(served.admin.put(f"{IMAGES}/next/channels/a", json={"release": 1}), 409, "release_rejected", "release")
    refused(
        served.project.post(SESSIONS, json={"runtime_image_id": "next:1"}), 409, "release_rejected", "runtime_image_id"
    )


@pytest.mark.produces(Reason.GENERATION_STALE, Reason.PROVIDER_UNKNOWN, Reason.IMAGE_UNKNOWN, Reason.IN_USE)
def test_the_deployment(served: Served) -> None:
    served.image("web")
    before = answered(served.admin.get(DEPLOYMENT))
    assert (before["default_image"], [pool["name"] for pool in before["pools"]]) == ("web", ["local"])
    assert answered(served.deploy()) == before
    refused(served.deploy(expected_generation=99), 409, "generation_stale", "expected_generation")
    refused(served.deploy(default_image="nope"), 400, "image_unknown", "default_image")
    refused(served.deploy(pools=[served.pool(provider="nope")]), 400, "provider_unknown", "pools")
    assert answered(served.admin.get(DEPLOYMENT)) == before
    changed = answered(served.deploy(pools=[served.pool(), served.pool(name="second", admission="paused")]))
    assert changed["generation"] == before["generation"] + 1
    served.session()
    assert refused(served.deploy(pools=[]), 409, "in_use", "pools")["details"]["by"]


def test_a_project_prefers(served: Served) -> None:
    served.image("web")
    served.image("other")
    project = answered(served.project.get(f"{V1}/project"))
    patch = served.project.patch
    assert answered(patch(f"{V1}/project", json={})) == project
    refused(patch(f"{V1}/project", json={"runtime_image_id": "nope"}), 400, "image_unknown", "runtime_image_id")
    refused(patch(f"{V1}/project", json={"runtime_image_id": ":"}), 400, "invalid_reference", "runtime_image_id")
    assert answered(served.project.get(f"{V1}/project")) == project
    wanted = {"runtime_image_id": "other", "expected_revision": project["revision"]}
    assert answered(patch(f"{V1}/project", json=wanted))["runtime_image_id"] == "other"
    stale = {"runtime_image_id": "web", "expected_revision": project["revision"]}
    refused(patch(f"{V1}/project", json=stale), 409, "revision_stale", "expected_revision")
    session = served.session()
    assert session["image"]["name"] == "other"
    assert session["image"]["decided_by"] == {"level": "project", "subject": "default"}
    assert [step["outcome"] for step in session["trail"]] == ["silent", "chosen", "overruled"]
    assert answered(patch(f"{V1}/project", json={"runtime_image_id": None}))["runtime_image_id"] is None
    assert served.session()["image"]["name"] == "web"


def test_preload_and_evict(served: Served) -> None:
    served.image("web", "one")
    served.image("other")
    kept = answered(served.admin.post(f"{IMAGES}/web/evict", json={}))
    assert kept["evicted"] == []
    assert [(it["node"], it["release"]) for it in kept["kept"]] == [("n1", 1)]
    gone = answered(served.admin.post(f"{IMAGES}/other/evict"))
    assert gone == {"evicted": [{"node": "n1", "release": 1}], "kept": []}

    def state() -> str:
        answer: str = answered(served.admin.get(f"{IMAGES}/other/readiness"))["items"][0]["state"]
        return answer

    eventually(lambda: state() == "absent")
    answered(served.admin.post(f"{IMAGES}/other/preload", json={"reference": "other:stable", "node": "n1"}), 202)
    eventually(lambda: state() == "ready")


def test_pages_are_stable_and_whole(served: Served) -> None:
    names = sorted(f"image-{n:02d}" for n in range(7))
    for name in names:
        answered(served.admin.post(IMAGES, json={"name": name}), 201)
    seen, after = [], None
    while True:
        page = answered(served.admin.get(IMAGES, params={"limit": 3, **({"after": after} if after else {})}))
        seen += [it["name"] for it in page["items"]]
        after = page["next"]
        if after is None:
            break
        served.admin.post(IMAGES, json={"name": f"a-{len(seen)}"})  # before the cursor: no page changes for it
    assert seen == names


def test_every_change_and_every_refused_try_is_in_the_audit(served: Served) -> None:
    release = served.image("web")
    headers = {"X-Request-Id": "the-try"}
    served.project.post(SESSIONS, json={"runtime_image_id": "nope"}, headers=headers)
    rows = answered(served.admin.get(f"{CORE}/audit"))["items"]
    tried = next(row for row in rows if row["request_id"] == "the-try")
    assert (tried["action"], tried["outcome"], tried["principal"]) == ("session.create", "image_unknown", "local user")
    of_release = answered(served.admin.get(f"{CORE}/audit", params={"subject": release["id"]}))["items"]
    assert {row["subject"] for row in of_release} == {release["id"]}
    assert {row["action"] for row in of_release} == {"release.register", "release.activate"}


def test_nodes_are_told(shared: Served) -> None:
    node = answered(shared.admin.get(f"{CORE}/sandbox/nodes"))["items"][0]
    assert (node["name"], node["provider"], node["online"], node["warm"]) == ("n1", "memory", True, True)


@pytest.mark.produces(Reason.LIMIT_EXCEEDED)
def test_an_upload_is_bounded_and_leaves_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    served = Served(tmp_path_factory.mktemp("bounded"), Settings(upload_bytes=1000))
    try:
        upload = f"{CORE}/sandbox/uploads"
        assert answered(served.admin.post(upload, content=b"x" * 1000), 201)["size"] == 1000
        error = refused(served.admin.post(upload, content=b"x" * 5_000_000), 422, "limit_exceeded")
        assert 1000 in error["details"].values()
        assert len(list((served.world.root / "uploads").iterdir())) == 1
    finally:
        served.close()


def layout_tar(**members: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name.replace("__", "-").replace("_", "."))
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


NO_IMAGE = json.dumps({"schemaVersion": 2, "manifests": []}).encode()


@pytest.mark.produces(Reason.MALFORMED_LAYOUT)
def test_what_is_no_layout_leaves_no_release(served: Served) -> None:
    answered(served.admin.post(IMAGES, json={"name": "web"}), 201)
    for data in (layout_tar(index_json=NO_IMAGE), layout_tar(oci__layout=b"{}", index_json=NO_IMAGE)):
        body = {"source": {"upload": served.upload_bytes(data)}}
        refused(served.admin.post(f"{IMAGES}/web/releases", json=body), 422, "malformed_layout")
    assert answered(served.admin.get(f"{IMAGES}/web/releases"))["items"] == []


@pytest.mark.produces(Reason.PLATFORM_MISMATCH, Reason.PROVIDER_UNKNOWN)
def test_what_registration_cannot_give(served: Served) -> None:
    answered(served.admin.post(IMAGES, json={"name": "web"}), 201)
    source = {"upload": served.upload("web")}
    body = {"source": source, "platforms": ["linux/s390x"]}
    error = refused(served.admin.post(f"{IMAGES}/web/releases", json=body), 422, "platform_mismatch")
    assert set(error["details"]) >= {"offered", "wanted"}
    body = {"source": source, "providers": ["nope"]}
    refused(served.admin.post(f"{IMAGES}/web/releases", json=body), 400, "provider_unknown", "providers")
