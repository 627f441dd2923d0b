"""What a node cannot do is told by its own reason, of that node and that Session alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbay.domain.declaration import Ability
from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, SESSIONS, Json, Served, answered, refused
from tests.app.world import eventually
from tests.fakes.memory_provider import DECLARATION


@pytest.mark.produces(Reason.HOST_UNFIT)
def test_a_host_that_lacks_something_rejects_no_image(served: Served) -> None:
    """The fault belongs to the node: the release stays pending, and is tried again by itself."""
    served.image("healthy")
    served.world.node.knobs.fail_prepare(Reason.HOST_UNFIT)
    served.register("web", "web")

    def readiness() -> Json:
        row: Json = answered(served.admin.get(f"{IMAGES}/web/readiness"))["items"][0]
        return row

    eventually(lambda: readiness()["state"] == "failed")
    failed = readiness()
    assert failed["fault"]["code"] == "host_unfit"
    assert failed["retry_at"] is not None
    assert served.release("web", 1)["state"] == "pending"
    refused(served.project.post(SESSIONS, json={"runtime_image_id": "web"}), 409, "release_pending", "runtime_image_id")


def row(served: Served, name: str) -> Json:
    shown: Json = answered(served.admin.get(f"{IMAGES}/{name}/readiness"))["items"][0]
    return shown


def retries(served: Served) -> list[tuple[str, str]]:
    """Whom the audit names, and why."""
    rows = answered(served.admin.get(f"{CORE}/audit"))["items"]
    return [(row["principal"], row["details"]["why"]) for row in rows if row["action"] == "readiness.retry"]


def failing(served: Served, name: str, reason: Reason, *, on: str | None = None) -> Json:
    """A release that the node has failed on, beside a healthy default; `on`: the part of it that is damaged."""
    served.image("healthy")
    with served.world.node.knobs.holding_prepare():
        variant = served.register(name, name)["variants"][0]
        digest = {None: None, "layer": variant["layers"][-1]["digest"], "manifest": variant["digest"]}[on]
        served.world.node.knobs.fail_prepare(reason, digest=digest)
    eventually(lambda: row(served, name)["state"] == "failed")
    failed = row(served, name)
    assert (failed["fault"]["code"], failed["attempt"]) == (reason, 1)
    assert served.release(name, 1)["state"] == "pending"
    return failed


@pytest.mark.parametrize("reason", [Reason.DIGEST_MISMATCH, Reason.REGISTRY_UNREACHABLE, Reason.HOST_UNFIT])
def test_what_failed_is_tried_again_when_somebody_asks(served: Served, reason: Reason) -> None:
    failed = failing(served, "web", reason)
    assert (failed["retry_at"] is None) == (reason is Reason.DIGEST_MISMATCH)
    for asked in ({"reference": "web:1", "node": "n1"}, {"reference": "web:1"}):
        answered(served.admin.post(f"{IMAGES}/web/preload", json=asked), 202)
        eventually(lambda: row(served, "web")["state"] == "ready")
        assert row(served, "web")["attempt"] == 2, "what is ready is not prepared again"
    assert served.release("web", 1)["state"] == "active"
    assert [why for _, why in retries(served)] == ["asked"]


@pytest.mark.parametrize(
    "reason, on, mend",
    [
        (Reason.DIGEST_MISMATCH, "layer", "registered"),
        (Reason.SIZE_MISMATCH, "manifest", "registered"),
        (Reason.BLOB_MISSING, "layer", "shared"),
        (Reason.DIGEST_MISMATCH, "layer", "verified"),
    ],
)
def test_what_failed_on_a_damaged_blob_is_tried_again_when_that_is_mended(
    served: Served, reason: Reason, on: str, mend: str
) -> None:
    failing(served, "web", reason, on=on)
    served.register("other", "other")
    answered(served.admin.post(f"{IMAGES}/healthy/verify"))
    assert retries(served) == [], "nothing was said of its blobs"
    if mend == "verified":
        assert answered(served.admin.post(f"{IMAGES}/web/verify"))["seen"] == "whole"
    elif mend == "registered":
        body = {"source": {"upload": served.upload("web")}}
        answered(served.admin.post(f"{IMAGES}/web/releases", json=body))
    else:
        served.register("shared", "web")
    eventually(lambda: row(served, "web")["state"] == "ready")
    assert served.release("web", 1)["state"] == "active"
    assert [why for _, why in retries(served)] == ["verified" if mend == "verified" else "registered"]


def test_a_blob_that_is_still_damaged_is_not_tried_again(served: Served) -> None:
    failing(served, "web", Reason.DIGEST_MISMATCH, on="layer")
    digest = served.release("web", 1)["variants"][0]["layers"][-1]["digest"]
    (served.world.root / "blobs" / digest.replace(":", "/")).write_bytes(b"other")
    assert answered(served.admin.post(f"{IMAGES}/web/verify"))["seen"] == "damaged"
    assert retries(served) == []
    assert row(served, "web")["attempt"] == 1


@pytest.mark.produces(Reason.ABILITY_UNSUPPORTED)
def test_an_ability_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    """The provider could do it; it does not declare it, so it is not asked."""
    served = Served(tmp_path, declaration=replace(DECLARATION, abilities=frozenset({Ability.EXEC})))
    try:
        served.image("web")
        session = served.session(runtime_image_id="web")["id"]
        answer = served.project.get(f"{SESSIONS}/{session}/files", params={"path": "/"})
        assert refused(answer, 422, "ability_unsupported")["details"] == {"abilities": ["exec"]}
        ran = served.project.post(f"{SESSIONS}/{session}/exec", json={"argv": ["true"]})
        assert answered(ran)["exit_code"] == 0
    finally:
        served.close()
