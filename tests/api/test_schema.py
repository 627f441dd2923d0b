"""Every operation of the contract, called with what its schema allows and with what it does not.

No answer is a fault of ours, every one is of a kind that the contract tells, and what the schema forbids is refused.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from sandbay.api import live
from sandbay.api.contract import openapi
from tests.api.served import IMAGES, Served, answered

_CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
_EXAMPLES = 8
_FAULT = 500
# What waits for something to happen would wait for chance to make it happen.
_NO_WAITING = {"wait": 0, "wait_seconds": 0}

# What is strict with every body is tried by hand, too (test_strict).
_MARKS: dict[GenerationMode, list[pytest.MarkDecorator]] = {
    GenerationMode.POSITIVE: [],
    GenerationMode.NEGATIVE: [pytest.mark.slow],
}
_SCHEMA = schemathesis.openapi.from_dict(openapi())
_CALLS = [
    pytest.param(operation, mode, id=f"{operation.label} {mode.value}", marks=_MARKS[mode])
    for operation in (found.ok() for found in _SCHEMA.get_all_operations() if isinstance(found, Ok))
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or list(operation.iter_parameters()) or list(operation.body)
]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An installation that chance may do anything to; things of every kind are there to be met."""
    it = Served(Path(tmp_path_factory.mktemp("schema")))
    try:
        it.image("web")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(live, "LIFE_SECONDS", 0.2)  # a live view ends by itself, but not soon
            yield it
    finally:
        it.close()


@pytest.fixture(scope="module")
def known(installation: Served) -> dict[str, str]:
    """Path parameters that name something, so that calls get past the first door."""
    body = {"release": 1, "channel": "later", "nodes": 99}
    promotion = answered(installation.admin.post(f"{IMAGES}/web/promotions", json=body), 201)["id"]
    return {
        "promotion": promotion,
        "image": "web",
        "channel": "stable",
        "number": "1",
        "project": "default",
        "secret": "gh",
        "session": installation.session()["id"],
        "scope": "team:none",
        "subject": "deployment",
        "agent": "coder",
    }


@pytest.mark.parametrize("operation, mode", _CALLS)
def test_answers_as_the_contract_says(
    operation: Any, mode: GenerationMode, installation: Served, known: dict[str, str]
) -> None:
    key = installation.admin_key if operation.path.startswith("/core/") else installation.project_key

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=_EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def called(case: Any) -> None:
        if mode is GenerationMode.POSITIVE:
            _aim(case, known)
        response = case.call(base_url=installation.address, headers={"Authorization": f"Bearer {key}"})
        assert response.status_code != _FAULT, response.text
        case.validate_response(response, checks=_CHECKS)

    called()


def _aim(case: Any, known: dict[str, str]) -> None:
    """Name what exists, and wait for nothing."""
    case.path_parameters = {**(case.path_parameters or {}), **_of(known, case.path_parameters)}
    case.query = {**(case.query or {}), **_of(_NO_WAITING, case.query)}
    if isinstance(case.body, dict):
        case.body = {**case.body, **_of(_NO_WAITING, case.body)}


def _of(values: dict[str, Any], place: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in (place or {})}
