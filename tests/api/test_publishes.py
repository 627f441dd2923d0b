"""Publishing through the interface."""

import json
from typing import Any

import httpx
import pytest

from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, Json, Served, answered, refused
from tests.app.world import eventually
from tests.support.contexts import packed, plain, recipe

PUBLISHES = f"{CORE}/sandbox/publishes"
FINAL = ("done", "failed", "cancelled")
WEB = recipe("web", "bootstrap:debian:12", ["COPY which /which"], which="web")


def begin(served: Served, context: bytes, **asked: Any) -> Json:
    body = {"upload": served.upload_bytes(context), **asked}
    return answered(served.admin.post(PUBLISHES, json=body), 201)


def end(served: Served, publish: Json) -> Json:
    def look() -> Json:
        return answered(served.admin.get(f"{PUBLISHES}/{publish['id']}"))

    eventually(lambda: look()["phase"] in FINAL)
    return look()


def events(response: httpx.Response) -> list[tuple[str, Json]]:
    found = []
    for block in response.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_from_a_folder_to_a_release(served: Served) -> None:
    begun = begin(served, WEB, promote="canary", source_commit="a" * 40)
    assert (begun["image"], begun["release"], begun["fault"]) == ("web", None, None)
    done = end(served, begun)
    assert (done["phase"], done["release"], done["built"]) == ("done", "web:1", True)
    assert [base["text"] for base in done["bases"]] == ["bootstrap:debian:12"]
    assert served.release("web", 1)["source_commit"] == "a" * 40
    assert answered(served.admin.get(f"{IMAGES}/web"))["channels"]["canary"]["release"] == 1
    listed = answered(served.admin.get(PUBLISHES, params={"image": "web"}))["items"]
    assert [it["id"] for it in listed] == [begun["id"]]
    assert answered(served.admin.get(PUBLISHES, params={"image": "other"}))["items"] == []
    said = {entry["action"] for entry in answered(served.admin.get(f"{CORE}/audit"))["items"]}
    assert {"publish.start", "publish.done", "image.create", "release.register", "channel.promote"} <= said


def test_the_log_is_followed_to_its_end_and_from_where_it_was_left(served: Served) -> None:
    begun = begin(served, WEB)
    told = events(served.admin.get(f"{PUBLISHES}/{begun['id']}/log"))
    text = "".join(data["text"] for name, data in told if name == "log")
    assert "STEP COPY which /which" in text
    assert [data["phase"] for name, data in told if name == "publish"][-1] == "done"
    headers = {"Last-Event-ID": str(len(text.encode()) - 6)}
    rest = events(served.admin.get(f"{PUBLISHES}/{begun['id']}/log", headers=headers))
    assert [data["text"] for name, data in rest if name == "log"] == [text[-6:]]


@pytest.mark.produces(Reason.BUILD_FAILED)
def test_a_step_that_fails(served: Served) -> None:
    ended = end(served, begin(served, recipe("web", "bootstrap:debian:12", ["RUN exit 7"])))
    assert ended["phase"] == "failed"
    assert ended["fault"]["code"] == "build_failed"
    assert ended["fault"]["details"] == {
        "step": "RUN exit 7",
        "exit_code": 7,
        "output": ["this is what the step said"],
    }
    refused(served.admin.get(f"{IMAGES}/web"), 404, "image_unknown")


@pytest.mark.produces(Reason.CANCELLED)
def test_a_publish_that_is_cancelled(served: Served) -> None:
    begun = begin(served, recipe("web", "bootstrap:debian:12", ["RUN sleep 600"]))
    answered(served.admin.post(f"{PUBLISHES}/{begun['id']}/cancel"), 202)
    ended = end(served, begun)
    assert (ended["phase"], ended["fault"]["code"]) == ("cancelled", "cancelled")
    refused(served.admin.get(f"{IMAGES}/web"), 404, "image_unknown")


def test_what_is_done_is_not_cancelled(served: Served) -> None:
    done = end(served, begin(served, WEB))
    refused(served.admin.post(f"{PUBLISHES}/{done['id']}/cancel"), 409, "already_ended")


def test_a_plan_builds_nothing(served: Served) -> None:
    body = {"upload": served.upload_bytes(WEB)}
    plan = answered(served.admin.post(f"{PUBLISHES}/plan", json=body))
    assert (plan["image"], plan["action"], plan["release"]) == ("web", "build", None)
    assert plan["steps"] == ["ARG BASE", "FROM ${BASE}", "COPY which /which"]
    end(served, begin(served, WEB))
    plan = answered(served.admin.post(f"{PUBLISHES}/plan", json=body))
    assert (plan["action"], plan["release"]) == ("reuse", "web:1")
    on_web = {"upload": served.upload_bytes(recipe("top", "image:web"))}
    plan = answered(served.admin.post(f"{PUBLISHES}/plan", json=on_web))
    layers = served.release("web", 1)["variants"][0]["layers"]
    assert [it["digest"] for it in plan["shared_layers"]] == [it["digest"] for it in layers]
    assert (plan["bases"][0]["release"], plan["bases"][0]["layers"]) == ("web:1", len(layers))
    registry = {"upload": served.upload_bytes(plain(["FROM reg.example/x:1"])), "dockerfile": "Dockerfile", "name": "x"}
    plan = answered(served.admin.post(f"{PUBLISHES}/plan", json=registry))
    assert (plan["action"], plan["bases"][0]["digest"]) == ("unknown", None)


def test_one_key_is_one_publish(served: Served) -> None:
    body = {"upload": served.upload_bytes(WEB)}
    key = {"Idempotency-Key": "once"}
    first = answered(served.admin.post(PUBLISHES, json=body, headers=key), 201)
    assert answered(served.admin.post(PUBLISHES, json=body, headers=key))["id"] == first["id"]
    other = {**body, "promote": "canary"}
    refused(served.admin.post(PUBLISHES, json=other, headers=key), 409, "idempotency_conflict", "Idempotency-Key")


LINK = packed({"image.toml": 'name = "web"\nbase = "image:base"\n'})


@pytest.mark.parametrize(
    "context, asked, status, code, param",
    [
        (recipe("web", "image:none"), {}, 400, "image_unknown", "base"),
        (recipe("Web", "image:none"), {}, 400, "invalid_body", "image.toml.name"),
        (plain(["FROM scratch", "RUN --mount=type=bind x"]), {}, 400, "invalid_body", "image.toml"),
        (b"no tar at all" * 100, {}, 422, "malformed_archive", None),
        (WEB, {"promote": "-"}, 400, "invalid_body", "promote"),
        (WEB, {"source_commit": "main"}, 400, "invalid_body", "source_commit"),
        (WEB, {"dockerfile": "Dockerfile"}, 400, "invalid_body", "name"),
        (WEB, {"packs": []}, 400, "invalid_body", "packs"),
    ],
)
def test_what_cannot_be_published(
    served: Served, context: bytes, asked: Json, status: int, code: str, param: str | None
) -> None:
    body = {"upload": served.upload_bytes(context), **asked}
    for path in (PUBLISHES, f"{PUBLISHES}/plan"):
        refused(served.admin.post(path, json=body), status, code, param)
    assert answered(served.admin.get(PUBLISHES))["items"] == []


def test_publishing_is_for_administrators(served: Served) -> None:
    for client, status in ((served.project, 403), (served.nobody, 401)):
        assert client.post(PUBLISHES, json={"upload": "x"}).status_code == status
        assert client.get(f"{PUBLISHES}/pub_x/log").status_code == status


def test_what_is_not_there(served: Served) -> None:
    for path in ("", "/log"):
        refused(served.admin.get(f"{PUBLISHES}/pub_none{path}"), 404, "not_found")
    refused(served.admin.post(f"{PUBLISHES}/pub_none/cancel"), 404, "not_found")
    refused(served.admin.post(PUBLISHES, json={"upload": "upl_none"}), 404, "not_found", "upload")
