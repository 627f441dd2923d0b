"""Secrets of projects through the API: values go in and never come out; Sessions and Templates name them."""

import base64
from typing import Any

import pytest

from sandbay.domain.reasons import Reason
from sandbay.domain.secret import SECRETS
from tests.api.served import CORE, SESSIONS, V1, Json, Served, answered, refused

PATH, ADMIN = V1 + "/secrets", CORE + "/projects/default/secrets"
TEMPLATES = V1 + "/environments/templates"
VALUE = "hush-hush"


def put(served: Served, name: str, value: str = VALUE) -> Json:
    kept: Json = answered(served.project.put(f"{PATH}/{name}", json={"value": value}))
    return kept


def test_a_secret_from_put_to_delete(served: Served) -> None:
    kept = put(served, "gh.token-1")
    assert kept.keys() == {"name", "updated_at"}
    assert answered(served.project.get(PATH))["items"] == [kept]
    assert answered(served.admin.get(ADMIN))["items"] == [kept]
    answered(served.admin.put(f"{ADMIN}/b", json={"value": "2"}))
    assert [it["name"] for it in answered(served.project.get(PATH))["items"]] == ["b", "gh.token-1"]
    assert served.project.delete(f"{PATH}/b").status_code == 204
    refused(served.project.delete(f"{PATH}/b"), 404, "not_found")
    assert served.admin.delete(f"{ADMIN}/gh.token-1").status_code == 204
    assert answered(served.admin.get(ADMIN))["items"] == []
    told = answered(served.admin.get(f"{CORE}/audit"))["items"]
    assert [it["action"] for it in told if it["action"].startswith("secret.")].count("secret.put") == 2
    assert VALUE not in str(told)


@pytest.mark.parametrize("name", ["-x", ".x", "a b", "a" * 129])
def test_a_name_is_short_and_plain(served: Served, name: str) -> None:
    refused(served.project.put(f"{PATH}/{name}", json={"value": VALUE}), 400, "invalid_body", "name")


@pytest.mark.parametrize("value", ["", "a\0b", "ü" * 33_000, 7, None])
def test_a_value_is_text_of_some_size_and_is_not_echoed(served: Served, value: Any) -> None:
    response = served.project.put(f"{PATH}/gh", json={"value": value})
    refused(response, 400, "invalid_body", "value")
    assert not value or value == 7 or str(value) not in response.text


def test_another_projects_secret_is_none(served: Served) -> None:
    put(served, "gh")
    answered(served.admin.post(f"{CORE}/projects", json={"name": "other"}), 201)
    assert answered(served.admin.get(f"{CORE}/projects/other/secrets"))["items"] == []
    refused(served.admin.get(f"{CORE}/projects/none/secrets"), 404, "not_found")
    key = answered(served.admin.post(f"{CORE}/projects/other/keys", json={"name": "k"}), 201)["secret"]
    stranger = {"Authorization": f"Bearer {key}"}
    assert answered(served.project.get(PATH, headers=stranger))["items"] == []
    refused(served.project.delete(f"{PATH}/gh", headers=stranger), 404, "not_found")


def test_a_key_that_is_held_to_a_part_of_the_project_writes_none(served: Served) -> None:
    said = {"name": "k", "agents": ["coder"]}
    key = answered(served.admin.post(f"{CORE}/projects/default/keys", json=said), 201)["secret"]
    held = {"Authorization": f"Bearer {key}"}
    refused(served.project.put(f"{PATH}/gh", json={"value": VALUE}, headers=held), 403, "forbidden")
    refused(served.project.delete(f"{PATH}/gh", headers=held), 403, "forbidden")


@pytest.mark.produces(Reason.LIMIT_REACHED)
def test_there_are_so_many_and_no_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbay.app.secrets.SECRETS", 2)
    assert SECRETS > 2
    put(served, "a")
    put(served, "b")
    error = refused(served.project.put(f"{PATH}/c", json={"value": VALUE}), 409, "limit_reached")
    assert error["details"] == {"limit": 2}
    put(served, "b", "anew")


@pytest.mark.produces(Reason.SECRET_UNKNOWN)
def test_sessions_and_templates_name_secrets(served: Served) -> None:
    served.image("web")
    env = {"PLAIN": "p", "TOKEN": {"secret": "gh"}}
    refused(served.project.post(SESSIONS, json={"env": env}), 400, "secret_unknown", "env")
    refused(served.project.post(TEMPLATES, json={"name": "work", "env": env}), 400, "secret_unknown", "env")
    put(served, "gh")
    made = answered(served.project.post(TEMPLATES, json={"name": "work", "env": env}), 201)
    assert made["env"] == env
    session = served.session(template="work")
    body = {"argv": ["env"]}
    ran = answered(served.project.post(f"{SESSIONS}/{session['id']}/exec", json=body))
    assert {"PLAIN=p", f"TOKEN={VALUE}"} <= set(base64.b64decode(ran["stdout"]).decode().splitlines())
    assert VALUE not in served.project.get(f"{SESSIONS}/{session['id']}").text
    changed = answered(served.project.patch(f"{TEMPLATES}/work", json={"env": {"TOKEN": "said"}}))
    assert changed["env"] == {"TOKEN": "said"}, "what is said of env replaces all of it"
    kept = answered(served.project.patch(f"{TEMPLATES}/work", json={"network": None}))
    assert kept["env"] == {"TOKEN": "said"}
    assert served.project.delete(f"{PATH}/gh").status_code == 204
    error = refused(served.project.post(f"{SESSIONS}/{session['id']}/exec", json=body), 404, "secret_unknown")
    assert error["details"] == {"variable": "TOKEN", "secret": "gh"}


@pytest.mark.parametrize("value", [{"secret": "-"}, {"secret": "gh", "more": 1}, {}, ["gh"], 7, None])
def test_what_is_neither_text_nor_a_secret_is_no_value(served: Served, value: Any) -> None:
    response = served.project.post(SESSIONS, json={"env": {"TOKEN": value}})
    refused(response, 400, "invalid_body", "env.TOKEN")
