"""What a node cannot do is told by its own reason, of that node and that Session alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbay.domain.declaration import Ability
from sandbay.domain.reasons import Reason
from tests.api.served import IMAGES, SESSIONS, Json, Served, answered, refused
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
