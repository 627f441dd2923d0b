"""Live views: a Session's states and snapshots of everything, resumed by id, freed when nobody listens."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.api import live
from sandbay.api.live import Snapshot, Snapshots
from tests.api.served import CORE, SESSIONS, Json, Served, answered, refused
from tests.app.world import eventually
from tests.support.both_clients import AsyncSdk, SyncSdk, runner


class Stream:
    """One reader."""

    def __init__(self, response: httpx.Response) -> None:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        self._lines = response.iter_lines()
        self.last_id = ""

    def next(self) -> tuple[str, Json]:
        """The next event, comments left out. Raises `StopIteration` at the end."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line and "data" in fields:
                self.last_id = fields.get("id", self.last_id)
                return fields["event"], json.loads(fields["data"])
            name, _, value = line.partition(": ")
            fields[name] = value
        raise StopIteration

    def until(self, event: str, **wanted: object) -> Json:
        while True:
            name, data = self.next()
            if name == event and wanted.items() <= data.items():
                return data


@contextlib.contextmanager
def listening(client: httpx.Client, path: str, last: str | None = None) -> Iterator[Stream]:
    headers = {"Accept": "text/event-stream", **({} if last is None else {"Last-Event-ID": last})}
    with client.stream("GET", path, headers=headers) as response:
        yield Stream(response)


def statuses(stream: Stream) -> list[str]:
    """Of all `state` events up to the end."""
    found = []
    with contextlib.suppress(StopIteration):
        while True:
            found.append(stream.until("state")["status"])
    return found


def test_a_session_is_followed_to_its_end(served: Served) -> None:
    served.image("web")
    session = served.session()
    path = f"{SESSIONS}/{session['id']}"
    with listening(served.project, f"{path}/events") as stream:
        first = stream.next()[1]
        assert first == {
            "number": 1,
            "status": "starting",
            "at": session["created_at"],
            "waiting_for": None,
            "reason": None,
            "foretold": None,
            "ended_because": None,
        }
        assert (stream.until("state")["status"], stream.last_id) == ("running", "2")
        served.project.delete(path)
        assert statuses(stream) == ["ending", "ended"]
    answer = served.project.get(f"{path}/events", headers={"Last-Event-ID": stream.last_id})
    assert (answer.status_code, answer.content) == (204, b"")
    with listening(served.project, f"{path}/events") as again:
        assert statuses(again) == ["starting", "running", "ending", "ended"]


def test_what_a_session_waits_for_is_told_with_progress(served: Served) -> None:
    served.image("web")
    served.image("other")
    answered(served.admin.post(f"{CORE}/sandbox/images/other/evict", json={}))
    eventually(lambda: other_is("absent", served))
    with served.world.node.knobs.holding_prepare():
        asked = {"runtime_image_id": "other", "wait_seconds": 60}
        session = answered(served.project.post(SESSIONS, json=asked), 201)
        with listening(served.project, f"{SESSIONS}/{session['id']}/events") as stream:
            assert stream.until("state", status="waiting")["waiting_for"] == "image"
            stream.until("progress", phase="pulling")
    with listening(served.project, f"{SESSIONS}/{session['id']}/events", stream.last_id) as back:
        assert back.until("state")["status"] == "starting"


def other_is(state: str, served: Served) -> bool:
    cells = answered(served.admin.get(f"{CORE}/sandbox/readiness"))["items"]
    return [cell["state"] for cell in cells if cell["image"] == "other"] == [state]


def test_why_a_session_failed_is_told(served: Served) -> None:
    served.image("web")
    served.image("other")
    answered(served.admin.post(f"{CORE}/sandbox/images/other/evict", json={}))
    eventually(lambda: other_is("absent", served))
    with served.world.node.knobs.holding_prepare():
        asked = {"runtime_image_id": "other", "wait_seconds": 1}
        session = answered(served.project.post(SESSIONS, json=asked), 201)
        with listening(served.project, f"{SESSIONS}/{session['id']}/events") as stream:
            assert stream.until("state")["reason"] is None
            assert stream.until("state", status="failed")["reason"]["code"] == "wait_expired"
            assert statuses(stream) == []


def test_whoever_comes_back_hears_only_what_is_new(served: Served) -> None:
    served.image("web")
    session = served.session()
    path = f"{SESSIONS}/{session['id']}"
    with listening(served.project, f"{path}/events") as stream:
        stream.until("state", status="running")
    with listening(served.project, f"{path}/events", stream.last_id) as back:
        served.project.delete(path)
        assert statuses(back) == ["ending", "ended"]
    strange = served.project.get(f"{path}/events", headers={"Last-Event-ID": "strange"})
    refused(strange, 400, "invalid_body", "Last-Event-ID")


def test_the_installation_is_followed(served: Served) -> None:
    with listening(served.admin, f"{CORE}/events") as stream:
        stream.until("node", online=True)
        served.image("web")
        assert stream.until("image", name="web", default=True)["channels"]["stable"]["release"] == 1
        session = served.session()
        shown = stream.until("session", id=session["id"], status="running")
        assert shown["node"] is not None
        served.project.delete(f"{SESSIONS}/{session['id']}")
        assert stream.until("gone") == {"event": "session", "id": session["id"]}


def test_readiness_once_and_live(served: Served) -> None:
    path = f"{CORE}/sandbox/readiness"
    assert answered(served.admin.get(path)) == {"items": [], "next": None}
    with listening(served.admin, path) as stream:
        served.image("web")
        cell = stream.until("readiness", state="ready")
    assert (cell["image"], cell["release"], cell["pinned"]) == ("web", 1, True)
    assert answered(served.admin.get(path))["items"] == [cell]


def test_each_key_sees_its_own(shared: Served) -> None:
    session = shared.session()
    stranger = shared.new_project("stranger")
    path = f"{SESSIONS}/{session['id']}/events"
    refused(stranger.get(path), 404, "not_found")
    refused(shared.admin.get(path), 403, "forbidden")
    refused(shared.project.get(f"{CORE}/events"), 403, "forbidden")
    refused(shared.nobody.get(f"{CORE}/events"), 401, "invalid_api_key")
    refused(shared.project.get(path, params={"x": "1"}), 400, "invalid_body", "x")


def test_whoever_goes_away_leaves_nothing(served: Served) -> None:
    served.image("web")
    path = f"{SESSIONS}/{served.session()['id']}/events"
    with contextlib.ExitStack() as stack:
        clients = [served.client(served.project_key) for _ in range(20)]
        streams = [stack.enter_context(listening(client, path)) for client in clients]
        assert {stream.next()[0] for stream in streams} == {"state"}
        assert len(served.core.changed._listeners) == 20
    eventually(lambda: not served.core.changed._listeners)


def test_a_silent_stream_says_that_it_lives_and_ends_after_a_while(
    shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(live, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(live, "LIFE_SECONDS", 2.0)
    text = shared.project.get(f"{SESSIONS}/{shared.session()['id']}/events").text
    assert text.startswith("id: 1\n")
    assert ": still here\n\n" in text
    assert text.count("data: ") == 2


def test_only_so_many_may_listen(served: Served) -> None:
    served.image("web")
    path = f"{SESSIONS}/{served.session()['id']}/events"
    with listening(served.project, path) as stream:
        stream.next()
        served.app.state.threads.streams.total_tokens = 1
        assert refused(served.admin.get(f"{CORE}/events"), 409, "limit_reached")["details"] == {"limit": 1}


@pytest.mark.parametrize("sdk", ["sync", "async"])
def test_the_sdk_follows_through_broken_connections(served: Served, monkeypatch: pytest.MonkeyPatch, sdk: str) -> None:
    monkeypatch.setattr(live, "LIFE_SECONDS", 1.0)
    served.image("web")
    session = served.session()
    loop, run = runner()
    with loop:
        kind: Any = SyncSdk() if sdk == "sync" else AsyncSdk(run)
        with kind.Client(transport=kind.Transport(served.address, served.project_key)) as client:
            told = []
            for event in client.sessions.events(session["id"]):
                told.append((event.kind, event.data["status"]))
                if len(told) == 2:
                    client.sessions.delete(session["id"])
            assert told == [("state", status) for status in ("starting", "running", "ending", "ended")]
        with kind.AdminClient(transport=kind.Transport(served.address, served.admin_key)) as admin:
            with contextlib.closing(admin.readiness()) as cells:
                assert next(iter(cells)).data["state"] == "ready"
            with contextlib.closing(admin.events()) as everything:
                assert next(iter(everything)).kind == "image"


THINGS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))


@given(st.lists(THINGS, max_size=6))
def test_a_reader_always_arrives_at_what_there_is(states: list[dict[str, str]]) -> None:
    """Whatever it is shown in whatever order, and whenever it comes back: what it was told adds up to what is."""
    now: list[Snapshot] = []
    reader = Snapshots(lambda: now, None)
    view: dict[str, str] = {}
    last: str | None = None
    for turn, state in enumerate(states):
        now[:] = [Snapshot("thing", key, json.dumps({"id": key, "value": value})) for key, value in state.items()]
        if turn % 3 == 2:
            reader = Snapshots(lambda: now, last)
        for event in reader.news().events:
            fields = dict(line.split(": ", 1) for line in event.decode().rstrip("\n").split("\n"))
            said, last = json.loads(fields["data"]), fields.get("id", last)
            match fields["event"]:
                case "reset":
                    view.clear()
                case "gone":
                    del view[said["id"]]
                case _:
                    view[said["id"]] = said["value"]
        assert view == state
        assert reader.news().events == ()
