"""The interface on PostgreSQL: two Cores on one database, and a database that goes away."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.store.postgresql import PostgresqlStore
from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, SESSIONS, V1, Served, answered, refused
from tests.app.world import SLOTS, eventually
from tests.support.postgres import Server


@pytest.fixture
def cores(postgres: Server, tmp_path: Path) -> Iterator[list[Served]]:
    """Two of them: the first has the node, the second has none. They share nothing but the database."""
    url = postgres.emptied()
    both: list[Served] = []
    try:
        both.extend(
            Served(tmp_path / name, store=PostgresqlStore(url), node=node)
            for name, node in (("alone", False), ("with-node", True))
        )
        both.reverse()
        yield both
    finally:
        for served in both:
            served.close()


def test_what_one_core_writes_the_other_answers(cores: list[Served]) -> None:
    """A Core without a node came first and made an installation without pools; the node brought the pool."""
    near, far = cores
    near.image("web")
    created = answered(far.project.post(SESSIONS, json={"runtime_image_id": "web:1", "wait_seconds": 60}), 201)
    assert near.until_running(created)["image"] == created["image"]
    assert answered(far.project.get(f"{SESSIONS}/{created['id']}"))["status"] == "running"
    answered(far.project.delete(f"{SESSIONS}/{created['id']}"), 202)
    eventually(lambda: answered(far.project.get(f"{SESSIONS}/{created['id']}"))["status"] == "ended")


def test_both_admit_and_promote_at_once(cores: list[Served]) -> None:
    """As many Sessions as there are slots, whoever admits; each key one Session; one channel, one history."""
    near, far = cores
    near.image("web")
    near.image("web", "web-two", promote="next")

    def ask(number: int) -> Any:
        body = {"runtime_image_id": f"web:{1 + number % 2}"}
        key = {"Idempotency-Key": f"k{number // 4}"}
        return cores[number % 2].project.post(SESSIONS, json=body, headers=key)

    def move(number: int) -> Any:
        body = {"release": 1 + number % 2, "why": f"{number}"}
        return cores[number % 2].admin.put(f"{IMAGES}/web/channels/canary", json=body)

    with ThreadPoolExecutor(16) as threads:
        asked, moved = [list(it) for it in (threads.map(ask, range(24)), threads.map(move, range(24)))]
    assert {answer.status_code for answer in moved} <= {200, 409}
    assert {answer.status_code for answer in asked} <= {201, 200, 409, 503}, [a.text for a in asked]
    sessions = {answer.json()["id"] for answer in asked if answer.status_code in (200, 201)}
    assert len(sessions) == SLOTS
    listed = answered(near.admin.get(f"{CORE}/sandbox/images/web"))
    assert listed["channels"]["canary"]["revision"] == sum(answer.status_code == 200 for answer in moved)
    assert answered(far.admin.get(f"{CORE}/sandbox/images/web")) == listed
    for session in sessions:
        near.until_running(answered(far.project.get(f"{SESSIONS}/{session}")))


@pytest.mark.produces(Reason.DATABASE_UNAVAILABLE)
def test_a_database_that_is_away_is_told_and_passes(tmp_path: Path) -> None:
    server = Server()
    try:
        served = Served(tmp_path, store=PostgresqlStore(server.database()))
        try:
            served.image("web")
            server.stop()
            for answer in (
                served.project.get(SESSIONS),
                served.project.post(SESSIONS, json={"runtime_image_id": "web:1"}),
                served.nobody.get("/readyz"),
                served.nobody.get(f"{V1}/project", headers={"Authorization": "Bearer sbp_x"}),
            ):
                refused(answer, 503, "database_unavailable")
                assert int(answer.headers["retry-after"]) > 0
            server.start()
            eventually(lambda: served.nobody.get("/readyz").status_code == 200)
            assert served.session(runtime_image_id="web:1")["status"] == "running"
        finally:
            served.close()
    finally:
        server.close()
