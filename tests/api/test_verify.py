"""Looking at every byte again: what was seen, what becomes of it, and that unknown is not damaged."""

from pathlib import Path

import pytest

from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey
from tests.api.served import CORE, IMAGES, SESSIONS, Json, Served, answered, refused
from tests.api.test_events import Stream
from tests.app.world import eventually

EVENTS = {"Accept": "text/event-stream"}


def verified(served: Served, name: str = "web", **asked: str) -> Json:
    return answered(served.admin.post(f"{IMAGES}/{name}/verify", json=asked))


def key_of(served: Served, name: str) -> ContentKey:
    """The content of an image that the node has ready."""
    (found,) = [
        key
        for key, variant in served.world.node.held.items()
        if variant.digest == served.release(name, 1)["variants"][0]["digest"]
    ]
    return found


def state(served: Served, name: str) -> Json:
    row: Json = answered(served.admin.get(f"{IMAGES}/{name}/readiness"))["items"][0]
    return row


def blob_path(served: Served, digest: str) -> Path:
    return served.world.root / "blobs" / digest.replace(":", "/")


def test_what_is_whole_is_said_to_be(served: Served) -> None:
    release = served.image("web")
    found = verified(served)
    assert (found["image"], found["seen"]) == ("web", "whole")
    variant = release["variants"][0]
    digests = {variant["digest"], variant["image_id"], *(layer["digest"] for layer in variant["layers"])}
    assert {blob["digest"] for blob in found["blobs"]} == digests
    assert [(it["node"], it["release"], it["seen"], it["fault"], it["do"]) for it in found["nodes"]] == [
        ("n1", 1, "whole", None, None)
    ]
    rows = answered(served.admin.get(f"{CORE}/audit"))["items"]
    assert [row["details"]["seen"] for row in rows if row["action"] == "image.verify"] == ["whole"]


@pytest.mark.parametrize("name", ["web", "other"])
def test_what_a_node_lost_it_fetches_again(served: Served, name: str) -> None:
    """Be it the default, which every node holds, or one that nobody waits for."""
    served.image("web")
    served.image("other")
    key = key_of(served, name)
    attempt = state(served, name)["attempt"]
    served.world.node.rotten.add(key)
    found = verified(served, name)
    assert found["seen"] == "damaged"
    (node,) = found["nodes"]
    assert (node["seen"], node["fault"]["code"]) == ("damaged", "content_lost")
    assert "again" in node["do"]
    eventually(lambda: state(served, name)["state"] == "ready" and state(served, name)["attempt"] > attempt)
    assert served.world.node.unpacked[key] == 2
    assert verified(served, name)["seen"] == "whole"
    lost = [row for row in answered(served.admin.get(f"{CORE}/audit"))["items"] if row["action"] == "readiness.lost"]
    assert [row["details"]["content_key"] for row in lost] == [key]


def test_it_is_failed_until_it_is_there_again_and_nothing_starts_on_it(served: Served) -> None:
    served.image("web")
    served.world.node.rotten.add(key_of(served, "web"))
    served.world.node.knobs.fail_prepare(Reason.CONTENT_LOST, times=1)
    assert verified(served)["seen"] == "damaged"
    eventually(lambda: state(served, "web")["state"] == "failed")
    assert state(served, "web")["fault"]["code"] == "content_lost"
    answer = served.project.post(SESSIONS, json={"runtime_image_id": "web", "wait_seconds": 0})
    assert answer.status_code == 503
    assert answered(served.admin.get(f"{CORE}/sandbox/nodes"))["items"][0]["online"]


@pytest.mark.parametrize("how", ["flipped", "cut", "gone"])
def test_a_damaged_blob_is_told_with_what_mends_it(served: Served, how: str) -> None:
    release = served.image("web")
    digest = release["variants"][0]["layers"][0]["digest"]
    path = blob_path(served, digest)
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if how == "cut" else bytes([data[0] ^ 1]) + data[1:])
    found = verified(served)
    code = {"flipped": "digest_mismatch", "cut": "size_mismatch", "gone": "blob_missing"}[how]
    damaged = [blob for blob in found["blobs"] if blob["seen"] != "whole"]
    assert found["seen"] == "damaged"
    assert [(it["digest"], it["releases"], it["seen"], it["fault"]["code"]) for it in damaged] == [
        (digest, [1], "damaged", code)
    ]
    assert "register" in damaged[0]["do"]
    assert str(served.world.root) not in str(found)
    # And so it is.
    assert not served.world.lives[-1].register("web", "web").created
    assert verified(served)["seen"] == "whole"


def test_one_release_on_one_node(served: Served) -> None:
    served.image("web", "one")
    served.image("web", "two")
    assert [it["release"] for it in verified(served, reference="web:1", node="n1")["nodes"]] == [1]
    assert {it["release"] for it in verified(served)["nodes"]} == {1, 2}
    refused(served.admin.post(f"{IMAGES}/web/verify", json={"node": "nope"}), 404, "not_found", "node")
    refused(served.admin.post(f"{IMAGES}/web/verify", json={"reference": "web:9"}), 400, "release_unknown", "reference")
    refused(served.admin.post(f"{IMAGES}/nope/verify"), 404, "image_unknown")
    refused(served.project.post(f"{IMAGES}/web/verify"), 403, "forbidden")


def test_it_can_be_followed(served: Served) -> None:
    served.image("web")
    with served.admin.stream("POST", f"{IMAGES}/web/verify", headers=EVENTS, json={}) as response:
        stream = Stream(response)
        found = stream.until("verified")
    assert found == verified(served)
