"""Each reason of the product has the class of its group, in a client that does not import the enum."""

import json

import pytest

from sandbay.domain.reasons import Group, Reason
from sandbay.sdk import errors

OWN_NAMES = {Group.REFERENCE: "UnknownReferenceError"}


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_has_the_class_of_its_group(reason: Reason) -> None:
    group = reason.about.group
    assert errors.class_of(reason.value).__name__ == OWN_NAMES.get(group, f"{group.value.capitalize()}Error")


def test_an_envelope_comes_back_as_it_was_sent() -> None:
    envelope = {
        "error": {
            "type": "unavailable_error",
            "code": "image_not_ready",
            "message": "no node holds web:3 yet",
            "param": "runtime_image_id",
            "details": {"state": "absent", "pools": [{"name": "local", "nodes": 1}]},
            "request_id": "req_9",
        }
    }
    error = errors.of_answer(503, json.dumps(envelope).encode())
    assert type(error) is errors.PlacementError
    assert (error.code, error.param) == ("image_not_ready", "runtime_image_id")
    assert error.details["state"] == "absent"
    assert error.envelope() == envelope


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("permission_error", errors.AccessError),
        ("conflict_error", errors.StateError),
        ("invalid_request_error", errors.RequestError),
        ("a type of the future", errors.ServerError),
    ],
)
def test_a_code_newer_than_the_client_goes_by_its_type(kind: str, expected: type[errors.SandbayError]) -> None:
    error = errors.of_reason({"code": "brand_new", "message": "m", "type": kind})
    assert type(error) is expected
    assert error.code == "brand_new"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"error": null}', b'{"error": {"code": 5}}'])
def test_an_answer_without_an_envelope_is_no_refusal(body: bytes) -> None:
    error = errors.of_answer(502, body)
    assert type(error) is errors.BadAnswerError
    assert error.code == "bad_answer"
