"""What a Session requires of its image, at admission and in an explanation."""

from typing import Any

import pytest

from sandbay.domain.reasons import Reason
from tests.api.served import SESSIONS, V1, Served, answered, refused


@pytest.mark.produces(Reason.REQUIREMENTS_UNMET)
def test_without_verified_tools_what_is_found_is_unknown(shared: Served) -> None:
    body = {"runtime_image_id": "web", "requires": ["node>=20", "git"]}
    error = refused(shared.project.post(SESSIONS, json=body), 400, "requirements_unmet", "requires")
    told = [
        {"tool": "node", "wanted": ">=20", "found": "unknown", "field": "requires"},
        {"tool": "git", "wanted": "any", "found": "unknown", "field": "requires"},
    ]
    assert error["details"] == {"reference": "web", "release": "web:1", **told[0], "unmet": told}
    explained = answered(shared.project.post(f"{V1}/explain", json=body))
    assert explained["refusal"] == {name: error[name] for name in ("code", "message", "param", "details")}
    assert (explained["resolved"], explained["placement"]) == (None, None)
    first = explained["trail"][0]
    assert (first["level"], first["outcome"], first["reason"]) == ("session", "refused", "requirements_unmet")
    assert answered(shared.project.get(SESSIONS))["items"] == []


@pytest.mark.parametrize("requires", [["node>"], ["git", ""], ["a b"], [1], "git", None, ["x\x00"], ["git"] * 65])
def test_what_is_no_requirement_is_refused_with_its_place(shared: Served, requires: Any) -> None:
    for path in (SESSIONS, f"{V1}/explain"):
        response = shared.project.post(path, json={"runtime_image_id": "web", "requires": requires})
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, "invalid_body")
        place = next((n for n, it in enumerate(requires) if it != "git"), None) if isinstance(requires, list) else None
        assert error["param"] == ("requires" if place is None else f"requires.{place}")
