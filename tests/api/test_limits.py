"""How often one may ask: each key and each address for itself, with the time to wait, and memory bounded."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.api import limits
from sandbay.api.limits import Buckets, Limits
from sandbay.api.server import create_app
from sandbay.app.core import Settings
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from tests.api.served import CORE, V1, Json, Served, answered, refused

IMAGES = f"{V1}/images"


class HandClock:
    """Seconds that pass when told."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> None:
        raise NotImplementedError


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Served]:
    """Five calls a key, three bad keys an address, and hardly any more later."""
    it = Served(
        tmp_path, Settings(requests_per_second=0.01, request_burst=5, bad_keys_per_second=0.01, bad_key_burst=3)
    )
    try:
        yield it
    finally:
        it.close()


def held_up(response: httpx.Response) -> Json:
    """The error of an answer that says when to come again."""
    error = refused(response, 429, "too_many_requests")
    assert error["type"] == "rate_limit_error"
    assert response.headers["retry-after"] == str(error["details"]["retry_after"])
    assert error["details"]["retry_after"] > 0
    return error


@pytest.mark.produces(Reason.TOO_MANY_REQUESTS)
def test_a_key_is_held_up_and_no_other(strict: Served) -> None:
    for _ in range(5):
        answered(strict.project.get(IMAGES))
    held_up(strict.project.get(IMAGES))
    held_up(strict.project.post(f"{V1}/sessions", json={}))
    answered(strict.admin.get(f"{CORE}/projects"))
    for path in ("/healthz", "/readyz"):
        answered(strict.project.get(path))
    assert strict.project.get("/metrics").status_code == 200


def test_bad_keys_of_an_address_are_not_looked_at_after_a_while(strict: Served) -> None:
    answered(strict.project.get(IMAGES))
    stranger, nobody = strict.client("sbp_guessed"), strict.nobody
    refused(stranger.get(IMAGES), 401, "invalid_api_key")
    refused(nobody.get(IMAGES), 401, "invalid_api_key")
    refused(strict.client("sbp_other").get(IMAGES), 401, "invalid_api_key")
    held_up(stranger.get(IMAGES))
    held_up(nobody.get(IMAGES))
    answered(strict.project.get(IMAGES))  # a key that was good lately
    held_up(strict.admin.get(f"{CORE}/projects"))  # one that has not been seen

    async def from_elsewhere() -> httpx.Response:
        transport = httpx.ASGITransport(strict.app, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://elsewhere") as client:
            headers = {"Authorization": f"Bearer {strict.admin_key}"}
            return await client.get(f"{CORE}/projects", headers=headers)

    answered(asyncio.run(from_elsewhere()))


def test_a_revoked_key_is_as_one_that_was_never_good(strict: Served) -> None:
    key = answered(strict.admin.post(f"{CORE}/projects/default/keys", json={"name": "k"}), 201)
    client = strict.client(key["secret"])
    answered(client.get(IMAGES))
    assert strict.admin.delete(f"{CORE}/projects/default/keys/{key['id']}").status_code < 300
    for _ in range(3):
        refused(client.get(IMAGES), 401, "invalid_api_key")
    held_up(client.get(IMAGES))


@given(st.lists(st.floats(0, 5), max_size=60))
def test_no_more_come_through_than_the_rate_allows(pauses: list[float]) -> None:
    clock = HandClock()
    buckets = Buckets(2.0, 3, clock)  # type: ignore[arg-type]
    passed = 0
    for pause in pauses:
        clock.seconds += pause
        wait = buckets.take("one")
        passed += not wait
        assert passed <= 3 + 2.0 * clock.seconds + 1e-6
        if wait:
            clock.seconds += wait + 1e-9
            assert not buckets.lacks("one")


def test_no_rate_is_no_limit() -> None:
    buckets = Buckets(0.0, 1, HandClock())  # type: ignore[arg-type]
    assert not any(buckets.take("one") for _ in range(100))


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST", 10)
    buckets = Buckets(1.0, 1, HandClock())  # type: ignore[arg-type]
    for number in range(1000):
        buckets.take(f"address {number}")
    assert len(buckets) == 10
    assert buckets.lacks("address 999")


@pytest.mark.parametrize(
    "others, held",
    [("192.0.2.1", True), ("192.0.2.2", False), ("2001:db8::2", True), ("2001:db8:0:1::1", False), ("", False)],
)
def test_an_address_is_one_of_ipv4_or_a_network_of_ipv6(others: str, *, held: bool) -> None:
    allowed = Limits(Settings(bad_key_burst=1), HandClock())  # type: ignore[arg-type]
    for address in ("192.0.2.1", "2001:db8::1"):
        allowed.bad(address, "x")
    with pytest.raises(RefusedError) if held else contextlib.nullcontext():
        allowed.attempt(others, "y")


def test_each_application_has_limits_of_its_own(strict: Served) -> None:
    for _ in range(5):
        answered(strict.project.get(IMAGES))

    async def at_another() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(strict.core))
        headers = {"Authorization": f"Bearer {strict.project_key}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=headers) as client:
            return await client.get(f"{V1}/project")

    answered(asyncio.run(at_another()))
