"""`/metrics`: what an installation counts, as Prometheus reads it; nothing secret, from this machine only."""

import asyncio

import httpx
from prometheus_client.parser import text_string_to_metric_families

from sandbay.api.server import create_app
from tests.api.served import SESSIONS, Served, answered, refused
from tests.app.world import eventually

Samples = dict[tuple[str, tuple[str, ...]], float]


def samples(served: Served) -> Samples:
    """(name, label values in the order of their names) → value."""
    answer = served.nobody.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_what_happens_is_counted(served: Served) -> None:
    before = samples(served)
    assert ("sandbay_admissions_total", ("refused", "image_unknown")) not in before
    served.image("web")
    eventually(lambda: samples(served)["sandbay_prepare_seconds_count", ("ready",)] == 1)
    session = served.session()
    refused(served.project.post(SESSIONS, json={"runtime_image_id": "nope"}), 400, "image_unknown", "runtime_image_id")
    now = samples(served)
    assert now["sandbay_admissions_total", ("placed", "")] == 1
    assert now["sandbay_admissions_total", ("refused", "image_unknown")] == 1
    assert now["sandbay_sessions", ("web", "running")] == 1
    assert now["sandbay_nodes", ("memory", "online")] == 1
    assert now["sandbay_session_start_seconds_count", ()] == 1
    assert now["sandbay_prepare_bytes_total", ()] > 0
    assert (now["sandbay_image_cache_hits_total", ()], now["sandbay_image_cache_misses_total", ()]) == (1, 0)
    served.project.delete(f"{SESSIONS}/{session['id']}")
    eventually(lambda: ("sandbay_sessions", ("web", "running")) not in samples(served))


def test_a_repeated_create_is_no_second_admission(served: Served) -> None:
    served.image("web")
    for status in (201, 200):
        answered(served.project.post(SESSIONS, json={}, headers={"Idempotency-Key": "k"}), status)
    now = samples(served)
    assert (now["sandbay_admissions_total", ("placed", "")], now["sandbay_admissions_total", ("replayed", "")]) == (
        1,
        1,
    )


def test_a_release_that_no_node_holds_is_a_miss(served: Served) -> None:
    served.image("web")
    served.image("other")
    answered(served.admin.post("/core/v1/sandbox/images/other/evict", json={}))
    eventually(lambda: all(row["state"] == "absent" for row in readiness(served, "other")))
    asked = {"runtime_image_id": "other", "wait_seconds": 0}
    refused(served.project.post(SESSIONS, json=asked), 503, "image_not_ready")
    now = samples(served)
    assert (now["sandbay_image_cache_hits_total", ()], now["sandbay_image_cache_misses_total", ()]) == (0, 1)
    assert 0 < now["sandbay_evicted_bytes_total", ()] < now["sandbay_prepare_bytes_total", ()]


def readiness(served: Served, name: str) -> list[dict[str, object]]:
    items: list[dict[str, object]] = answered(served.admin.get(f"/core/v1/sandbox/images/{name}/readiness"))["items"]
    return items


def test_only_this_machine_may_ask(served: Served) -> None:
    async def from_elsewhere() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(served.core), client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://elsewhere") as client:
            return await client.get("/metrics")

    refused(asyncio.run(from_elsewhere()), 403, "forbidden")


def test_two_installations_in_one_process_count_for_themselves(served: Served, shared: Served) -> None:
    shared.session()
    assert samples(shared)["sandbay_session_start_seconds_count", ()] == 1
    assert samples(served)["sandbay_session_start_seconds_count", ()] == 0
