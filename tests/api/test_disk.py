"""`sandbox/disk`: who has which bytes of a node, what may go, and what waits for room."""

from pathlib import Path

import pytest

from sandbay.domain.disk import Kept
from tests.api.served import CORE, SESSIONS, Json, Served, answered
from tests.app.world import eventually

DISK = f"{CORE}/sandbox/disk"


def disk(served: Served) -> Json:
    (node,) = answered(served.admin.get(DISK))["items"]
    found: Json = node
    return found


def lines(found: Json) -> dict[str, Json]:
    return {f"{image['image']}:{it['release']}": it for image in found["images"] for it in image["releases"]}


def test_bytes_are_told_by_image_and_release(served: Served) -> None:
    served.world.node.budget = 10_000
    for name, content in (("base", "one"), ("web", "two"), ("web", "three"), ("twin", "two")):
        served.image(name, content)
    found = disk(served)
    sizes = {name: it["bytes"] for name, it in lines(found).items()}
    assert found["used"] == sizes["base:1"] + sizes["web:1"] + sizes["web:2"], "what two images have is there once"
    assert (found["budget"], found["high"], found["low"], found["known"]) == (10_000, 9_000, 7_000, True)
    assert lines(found)["web:1"]["shared"] == lines(found)["twin:1"]["shared"] == sizes["web:1"]
    assert lines(found)["web:2"]["unique"] == sizes["web:2"]
    web = next(image for image in found["images"] if image["image"] == "web")
    assert (web["bytes"], web["shared"]) == (sizes["web:1"] + sizes["web:2"], sizes["web:1"])
    assert all(it["bytes"] == it["shared"] + it["unique"] for it in (*found["images"], *lines(found).values()))
    assert (found["leftover"], found["waiting"]) == (0, [])


def test_why_each_stays_and_what_waits(served: Served) -> None:
    served.world.node.budget = 10_000
    for name in ("base", "web", "idle"):
        served.image(name, name * 20)
    session = served.session(runtime_image_id="web")["id"]
    kept = {name: (it["kept"], it["why"]) for name, it in lines(disk(served)).items()}
    assert kept == {
        "base:1": (Kept.REQUIRED, "it is required on this node"),
        "web:1": (Kept.SESSION, "a Session runs from it"),
        "idle:1": (None, None),
    }
    answered(served.admin.post(f"{CORE}/sandbox/images/idle/evict"))
    eventually(lambda: "idle:1" not in lines(disk(served)))
    served.world.node.budget = disk(served)["used"] + 20
    answered(served.admin.post(f"{CORE}/sandbox/images/idle/preload"), 202)
    eventually(lambda: disk(served)["waiting"])
    (waits,) = disk(served)["waiting"]
    assert (waits["image"], waits["release"]) == ("idle", 1)
    assert waits["bytes"] > 0
    assert set(lines(disk(served))) == {"base:1", "web:1"}
    assert answered(served.project.get(f"{SESSIONS}/{session}"))["status"] == "running"


def test_a_node_that_does_not_tell_is_shown_as_such(tmp_path: Path) -> None:
    served = Served(tmp_path)
    try:
        found = disk(served)
        assert (found["known"], found["images"], found["used"]) == (False, [], 0)
        assert found["node"] == "n1"
    finally:
        served.close()


@pytest.mark.parametrize("key", ["project", "nobody"])
def test_it_is_for_administrators(served: Served, key: str) -> None:
    assert getattr(served, key).get(DISK).status_code in (401, 403)
