"""Tools that a release promises: checked before it is active, shown, required, checked again."""

from typing import Any

import pytest

from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey
from tests.api.served import IMAGES, SESSIONS, V1, Json, Served, answered, refused
from tests.app.world import eventually
from tests.fakes.memory_provider import small_system

GOOD = {"node": "echo v22.3.0", "git": "echo git version 2.39.5"}
BAD = {**GOOD, "jq": "jq --version"}
VERSIONS = {"node": "22.3.0", "git": "2.39.5"}


def checked(served: Served, name: str = "web", number: int = 1) -> Json:
    """The release, once no check is under way."""
    eventually(lambda: served.release(name, number)["contract"]["state"] != "due")
    return served.release(name, number)


def rejected(served: Served, **asked: Any) -> Json:
    """Web, registered and rejected for its contract."""
    served.register("web", "web", tools=BAD, **asked)
    eventually(lambda: served.release("web", 1)["state"] == "rejected")
    return served.release("web", 1)


def again(served: Served, **asked: Any) -> Json:
    """The same content, registered once more."""
    body = {"source": {"upload": served.upload("web")}, **asked}
    return answered(served.admin.post(f"{IMAGES}/web/releases", json=body), 200)


def test_verified_tools_are_shown(served: Served) -> None:
    release = served.image("web", tools=GOOD)
    assert release["tools"] == release["variants"][0]["tools"] == VERSIONS
    assert release["contract"] == {"state": "kept", "tools": GOOD, "checks": 1, "trouble": None}
    report = release["variants"][0]["report"]
    assert report["tools"]["git"] == {
        "command": "echo git version 2.39.5",
        "path": "/bin/echo",
        "exit": 0,
        "printed": "git version 2.39.5",
        "version": "2.39.5",
        "violation": None,
    }
    shape = ("number", "kept", "boots", "shell", "user", "uid", "home", "workdir", "fault")
    assert [report[name] for name in shape] == [1, True, True, True, "root", 0, "/root", "/workspace", None]
    assert answered(served.project.get(f"{V1}/images"))["items"][0]["tools"] == {"stable": VERSIONS}


def test_verified_tools_are_frozen_and_enough_or_not(served: Served) -> None:
    served.image("web", tools=GOOD)
    session = served.session(runtime_image_id="web", requires=["node>=20,<23", "git"])
    assert session["image"]["tools"] == VERSIONS
    for path in (SESSIONS, f"{V1}/explain"):
        response = served.project.post(path, json={"requires": ["git", "node>=23", "jq"]})
        error = response.json()["error"] if path == SESSIONS else answered(response)["refusal"]
        assert (error["code"], error["param"]) == ("requirements_unmet", "requires")
        assert [error["details"][name] for name in ("tool", "wanted", "found")] == ["node", ">=23", "22.3.0"]
        assert [(it["tool"], it["found"]) for it in error["details"]["unmet"]] == [("node", "22.3.0"), ("jq", None)]
    explained = answered(served.project.post(f"{V1}/explain", json={"requires": ["node~=22.3"]}))
    assert explained["resolved"]["tools"] == VERSIONS


def test_without_tools_a_release_is_unverified_and_active(served: Served) -> None:
    release = served.image("web")
    assert (release["tools"], release["variants"][0]["tools"]) == ("unverified", "unverified")
    assert release["variants"][0]["report"] is None
    assert release["contract"] == {"state": "unverified", "tools": {}, "checks": 0, "trouble": None}
    assert answered(served.project.get(f"{V1}/images"))["items"][0]["tools"] == {"stable": "unverified"}
    assert answered(served.admin.get(f"{IMAGES}/web/releases/1/reports"))["items"] == []
    assert served.world.node.knobs.trials == []


@pytest.mark.produces(Reason.CONTRACT_VIOLATED)
def test_a_violated_contract_rejects_the_release_and_moves_nothing(served: Served) -> None:
    served.image("base")
    release = rejected(served, promote="canary")
    assert release["fault"]["code"] == "contract_violated"
    told = {"violation": "not_found", "command": "jq --version", "exit": 127, "path": None, "printed": ""}
    assert release["fault"]["details"] == {"tools": {"jq": told}}
    assert release["contract"]["state"] == "violated"
    assert answered(served.admin.get(f"{IMAGES}/web"))["channels"] == {}
    refused(
        served.project.post(SESSIONS, json={"runtime_image_id": "web"}), 409, "release_rejected", "runtime_image_id"
    )


def test_other_tools_open_it_again_and_the_first_proof_follows(served: Served) -> None:
    rejected(served, promote="canary")
    assert again(served)["state"] == "rejected"
    same = again(served, tools=BAD)
    assert (same["state"], same["contract"]["checks"]) == ("rejected", 1)
    other = again(served, tools=GOOD)
    assert (other["number"], other["contract"]["checks"]) == (1, 2)
    eventually(lambda: served.release("web", 1)["state"] == "active")
    assert served.release("web", 1)["tools"] == VERSIONS
    channels = answered(served.admin.get(f"{IMAGES}/web"))["channels"]
    assert {name: it["release"] for name, it in channels.items()} == {"stable": 1, "canary": 1}


def test_a_release_may_promise_nothing_any_more(served: Served) -> None:
    rejected(served)
    again(served, tools={})
    eventually(lambda: served.release("web", 1)["state"] == "active")
    assert checked(served)["tools"] == "unverified"


def test_a_worse_result_shows_and_takes_nothing_from_who_is_there(served: Served) -> None:
    served.image("web", tools=GOOD)
    session = served.session(runtime_image_id="web", requires=["git"])
    # The same bytes answer differently only when something is wrong; a simulated node can do it.
    content = ContentKey(next(iter(served.world.node.held)))
    served.world.node.contents[content] = small_system("x", leave_out=["echo", "sh"])
    answer = answered(served.admin.post(f"{IMAGES}/web/releases/1/check"), 202)
    assert answer["contract"]["checks"] == 2
    release = checked(served)
    assert (release["state"], release["contract"]["state"], release["tools"]) == ("active", "violated", "unverified")
    report = release["variants"][0]["report"]
    assert (report["number"], report["kept"], report["shell"]) == (2, False, False)
    assert {name: it["violation"] for name, it in report["tools"].items()} == dict.fromkeys(GOOD, "not_found")
    assert answered(served.admin.get(f"{IMAGES}/web"))["channels"]["stable"]["release"] == 1
    assert answered(served.project.get(f"{SESSIONS}/{session['id']}"))["image"]["tools"]["git"] == "2.39.5"
    body = {"runtime_image_id": "web", "requires": ["git"]}
    error = refused(served.project.post(SESSIONS, json=body), 400, "requirements_unmet", "requires")
    assert error["details"]["found"] == "unknown"


def test_every_check_adds_a_report_and_the_newest_counts(served: Served) -> None:
    served.image("web", tools=GOOD)
    content = ContentKey(next(iter(served.world.node.held)))
    for left_out, state in (["echo"], "violated"), ([], "kept"):
        served.world.node.contents[content] = small_system("x", leave_out=left_out)
        answered(served.admin.post(f"{IMAGES}/web/releases/1/check"), 202)
        assert checked(served)["contract"]["state"] == state
    assert served.release("web", 1)["tools"] == VERSIONS
    reports = f"{IMAGES}/web/releases/1/reports"
    told = answered(served.admin.get(reports))["items"]
    assert [(it["number"], it["kept"]) for it in told] == [(3, True), (2, False), (1, True)]
    first = answered(served.admin.get(reports, params={"limit": 1}))
    rest = answered(served.admin.get(reports, params={"limit": 2, "after": first["next"]}))
    assert (first["items"] + rest["items"], rest["next"]) == (told, None)


def test_what_the_host_could_not_do_says_nothing_of_the_image(served: Served) -> None:
    served.world.node.knobs.trial_faults = [Reason.START_FAILED]
    served.register("web", "web", tools=GOOD)
    eventually(lambda: served.release("web", 1)["contract"]["trouble"])
    release = served.release("web", 1)
    assert (release["state"], release["contract"]["state"]) == ("pending", "due")
    assert release["contract"]["trouble"]["code"] == "start_failed"
    refused(served.project.post(SESSIONS, json={"runtime_image_id": "web"}), 409, "release_pending", "runtime_image_id")
    again(served, tools={"git": GOOD["git"]})  # another check does not wait for the time to rest
    eventually(lambda: served.release("web", 1)["state"] == "active")
    assert served.release("web", 1)["contract"]["trouble"] is None


def test_two_images_with_the_same_bytes_keep_contracts_of_their_own(served: Served) -> None:
    served.image("web", "same", tools=GOOD)
    served.image("two", "same")
    served.image("three", "same", tools={"cat": "echo cat 9.1"})
    assert [served.release(name, 1)["tools"] for name in ("web", "two", "three")] == [
        VERSIONS,
        "unverified",
        {"cat": "9.1"},
    ]


def test_a_check_needs_a_release_that_can_be_looked_at(served: Served) -> None:
    served.image("base")
    post = served.admin.post
    refused(post(f"{IMAGES}/nope/releases/1/check"), 404, "image_unknown")
    refused(post(f"{IMAGES}/base/releases/7/check"), 404, "release_unknown")
    refused(served.project.post(f"{IMAGES}/base/releases/1/check"), 403, "forbidden")
    served.world.node.knobs.fail_prepare(Reason.MALFORMED_LAYER, times=9)
    served.register("web", "web", tools=GOOD)
    eventually(lambda: served.release("web", 1)["state"] == "rejected")
    refused(post(f"{IMAGES}/web/releases/1/check"), 409, "release_rejected")
    same = again(served, tools={"git": "git --version"})
    assert (same["state"], same["contract"]["tools"]) == ("rejected", GOOD)


def test_what_promises_nothing_can_be_looked_at_too(served: Served) -> None:
    served.image("base")
    assert answered(served.admin.post(f"{IMAGES}/base/releases/1/check"), 202)["state"] == "active"
    release = checked(served, "base")
    assert release["contract"] == {"state": "kept", "tools": {}, "checks": 1, "trouble": None}
    assert (release["tools"], release["variants"][0]["report"]["user"]) == ("unverified", "root")


@pytest.mark.parametrize(
    "tools, param",
    [
        ({"node": ""}, "tools.node"),
        ({"node": "node '"}, "tools.node"),
        ({"node": "a\x00b"}, "tools.node"),
        ({"node": "x" * 1025}, "tools.node"),
        ({"-x": "x --version"}, "tools.-x"),
        ({"a b": "x"}, "tools.a b"),
        ({f"t{n}": "x" for n in range(65)}, "tools"),
        (["node"], "tools"),
        ({"node": 1}, "tools.node"),
    ],
)
def test_what_is_no_contract_is_refused_with_its_place(shared: Served, tools: Any, param: str) -> None:
    body = {"source": {"upload": "upl_00000000000000000000"}, "tools": tools}
    error = refused(shared.admin.post(f"{IMAGES}/web/releases", json=body), 400, "invalid_body", param)
    assert error["message"]
