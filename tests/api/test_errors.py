"""One table from reason to HTTP, total, and as specified."""

import pytest

from sandbay.api.errors import envelope, refused, status_of, type_of
from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Group, Reason

# Group by group as the specification has it; where one reason differs it is named.
SPECIFIED = {
    400: "invalid_reference image_unsupported requirements_unmet release_incomplete not_one_distribution invalid_body"
    " scope_required",
    401: "invalid_api_key",
    403: "forbidden image_not_allowed image_not_granted image_enforced override_denied",
    404: "image_unknown channel_unknown release_unknown provider_unknown template_unknown scope_unknown"
    " secret_unknown not_found",
    409: "image_retired release_retired release_pending release_rejected no_default_image generation_stale"
    " revision_stale idempotency_conflict in_use name_taken not_running already_ended limit_reached cancelled"
    " not_suspended",
    422: "user_not_found no_command no_shell invalid_workdir network_unsupported resource_unsupported"
    " ability_unsupported path_not_found path_invalid contract_violated build_failed",
    429: "too_many_requests",
    500: "internal",
    502: "image_mismatch image_absent_on_node start_failed setup_failed node_lost timed_out registry_unreachable"
    " unauthorized_or_missing rate_limited stalled manifest_missing repository_missing source_forbidden",
    503: "image_not_ready no_capacity no_node_online pool_paused wait_expired image_prepare_failed host_unfit"
    " snapshot_node_offline image_lost"
    " database_unavailable",
    507: "no_space",
}
STATUS = {code: status for status, codes in SPECIFIED.items() for code in codes.split()}


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_the_status_of_the_specification(reason: Reason) -> None:
    assert status_of(reason) == STATUS.get(reason.value, 422 if reason.about.group is Group.CONTENT else None)
    assert type_of(status_of(reason)).endswith("_error")
    assert type_of(status_of(reason, named_in_body=True)).endswith("_error")


@pytest.mark.parametrize("reason", [r for r in Reason if status_of(r) == 404])
def test_what_a_body_names_and_nobody_knows_is_the_bodys_fault(reason: Reason) -> None:
    assert status_of(reason, named_in_body=True) == (404 if reason is Reason.NOT_FOUND else 400)


def test_the_envelope_carries_everything_and_stays_ascii() -> None:
    refusal = Refusal(Reason.NO_CAPACITY, "full – all of it \udcff", "x", {"retry_after": 5, "pools": {"a": (1, 2)}})
    response = refused(refusal, "req_1")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "5"
    assert bytes(response.body).isascii()
    assert envelope(refusal, "req_1")["error"] == {
        "type": "unavailable_error",
        "code": "no_capacity",
        "message": refusal.message,
        "param": "x",
        "details": {"retry_after": 5, "pools": {"a": [1, 2]}},
        "request_id": "req_1",
    }


def test_only_a_missing_key_asks_for_one() -> None:
    challenges = {r for r in Reason if "www-authenticate" in refused(Refusal(r, "no"), None).headers}
    assert challenges == {Reason.INVALID_API_KEY}
