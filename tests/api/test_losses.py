"""Moving a channel away from somebody's tools is refused with who would lose what, whoever moves it; or forced."""

from typing import Any

import pytest

from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Json, Served, answered, refused
from tests.app.world import eventually

STABLE, PROMOTIONS = f"{IMAGES}/web/channels/stable", f"{IMAGES}/web/promotions"
TEMPLATES = f"{V1}/environments/templates"
SKILL = "---\nname: cook\ndescription: cooks\nrequires: [git]\n---\n"


def tools(**versions: str) -> Json:
    return {"tools": {name: f"echo {name} {version}" for name, version in versions.items()}}


@pytest.fixture
def house(served: Served) -> Served:
    """The default with every tool, and `web`: 1 (stable) with all, 2 without git, 3 with an old node, 4 newer."""
    everything = {"node": "30.0", "git": "9.0"}
    served.image("usual", **tools(**everything))
    for content, has in enumerate(({"node": "20.1", "git": "2.4"}, {"node": "20.1"}, {"node": "18.2", "git": "2.4"})):
        served.image("web", f"web-{content}", **tools(**has))
    served.image("web", "web-4", **tools(node="22.0", git="2.5"))
    template(served, "plain", runtime_image_id="web")
    template(served, "noder", runtime_image_id="web:stable", requires=["node>=20"])
    template(served, "cook", runtime_image_id="web", skills=[{"files": [{"path": "SKILL.md", "content": SKILL}]}])
    template(served, "pinned", runtime_image_id="web:1", requires=["git", "node==20.1"])
    template(served, "elsewhere", runtime_image_id="usual", requires=["node>=30"])
    return served


def template(served: Served, name: str, **content: Any) -> Json:
    return answered(served.project.post(TEMPLATES, json={"name": name, **content}), 201)


def lost(error: Json) -> list[tuple[str, str, list[tuple[str, str, str | None]]]]:
    told = error["details"]["lost"]
    return [(it["kind"], it["name"], [(o["tool"], o["wanted"], o["found"]) for o in it["unmet"]]) for it in told]


NO_GIT = [("template", "cook", [("git", "any", None)])]
OLD_NODE = [("template", "noder", [("node", ">=20", "18.2")])]


@pytest.mark.produces(Reason.REQUIREMENTS_UNMET)
@pytest.mark.parametrize("release, who", [(2, NO_GIT), (3, OLD_NODE)])
def test_who_would_lose_what_is_told_and_nothing_moves(house: Served, release: int, who: Any) -> None:
    for response in (
        house.admin.put(STABLE, json={"release": release}),
        house.admin.post(PROMOTIONS, json={"release": release}),
    ):
        error = refused(response, 400, "requirements_unmet", "release")
        assert lost(error) == who
        assert error["details"]["count"] == 1
        assert error["details"]["lost"][0]["has"] == "web:1"
        assert error["details"]["lost"][0]["project"] == "default"
    assert answered(house.admin.get(STABLE))["release"] == 1
    assert answered(house.admin.get(PROMOTIONS))["items"] == []
    assert answered(house.admin.put(STABLE, json={"release": 4}))["release"] == 4


def test_forced_it_moves_and_the_audit_has_who_lost(house: Served) -> None:
    assert answered(house.admin.put(STABLE, json={"release": 3, "force": True}))["release"] == 3
    (moved,) = [it for it in answered(house.admin.get(f"{CORE}/audit"))["items"] if it["action"] == "channel.promote"]
    assert [it["name"] for it in moved["details"]["forced"]] == ["noder"]
    refused(house.project.post(SESSIONS, json={"template": "noder"}), 400, "requirements_unmet", "template")
    assert answered(house.admin.put(STABLE, json={"release": 3}))["release"] == 3, "who has lost already loses no more"


def test_a_rollback_is_asked_the_same(house: Served) -> None:
    answered(house.admin.put(STABLE, json={"release": 4}))
    template(house, "new", runtime_image_id="web", requires=["node>=22"])
    error = refused(house.admin.post(f"{STABLE}/rollback"), 400, "requirements_unmet", "release")
    assert lost(error) == [("template", "new", [("node", ">=22", "20.1")])]
    assert answered(house.admin.post(f"{STABLE}/rollback", json={"force": True}))["release"] == 1


def test_another_channel_and_another_image_concern_nobody(house: Served) -> None:
    assert answered(house.admin.put(f"{IMAGES}/web/channels/canary", json={"release": 3}))["release"] == 3


def test_a_registration_that_would_move_the_channel_leaves_it_and_says_so_in_the_audit(house: Served) -> None:
    body = {"promote": "stable", **tools(node="18.9", git="3.0")}
    release = house.image("web", "web-5", **body)
    assert release["state"] == "active"
    assert answered(house.admin.get(STABLE))["release"] == 1
    held = [it for it in answered(house.admin.get(f"{CORE}/audit"))["items"] if it["action"] == "channel.promote"]
    assert [(it["outcome"], it["principal"]) for it in held] == [("requirements_unmet", "system")]
    better = house.image("web", "web-6", promote="stable", **tools(node="24.0", git="3.0"))
    eventually(lambda: answered(house.admin.get(STABLE))["release"] == better["number"])
