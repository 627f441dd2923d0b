"""A whole installation behind real HTTP on loopback: SQLite, the in-memory provider, uvicorn in a thread."""

import io
import json
import socket
import ssl
import tarfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from sandbay.api import exec_socket
from sandbay.api.contract import openapi
from sandbay.api.server import create_app
from sandbay.app.core import Core, Settings
from sandbay.app.installation import local_keys
from sandbay.domain.declaration import Declaration
from sandbay.ports.store import Store
from tests.app.world import Running, World, archive, eventually
from tests.fakes.memory_provider import DECLARATION
from tests.support.reasons import App, Message, Watched

CORE, V1 = "/core/v1", "/v1"
IMAGES, SESSIONS = CORE + "/sandbox/images", V1 + "/sessions"
Json = dict[str, Any]
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # httpx would load the system's certificates for each client


class Served:
    """`admin` and `project` are HTTP clients with a key each; `nobody` has none."""

    def __init__(
        self,
        root: Path,
        settings: Settings | None = None,
        declaration: Declaration = DECLARATION,
        plain_registries: Sequence[str] = (),
        *,
        store: Store | None = None,
        node: bool = True,
    ) -> None:
        self.root = root
        self.world = World(root / "world", settings, declaration, plain_registries, store)
        self.running: Running = self.world.born().start(node=node)
        self.surprises: set[str] = set()
        self.admin_key, self.project_key = local_keys(self.core)
        self.app = create_app(self.core)
        self._server, self._thread, self.address = _serve(self.app, self.surprises)
        self._clients: list[httpx.Client] = []
        self.admin, self.project, self.nobody = (self.client(key) for key in (self.admin_key, self.project_key, None))

    @property
    def core(self) -> Core:
        return self.running.core

    def client(self, key: str | None) -> httpx.Client:
        """An HTTP client that sends this key."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        client = httpx.Client(base_url=self.address, headers=headers, timeout=60, trust_env=False, verify=_NO_TLS)
        self._clients.append(client)
        return client

    def new_project(self, name: str) -> httpx.Client:
        """A client of another project."""
        answered(self.admin.post(f"{CORE}/projects", json={"name": name}), 201)
        key = answered(self.admin.post(f"{CORE}/projects/{name}/keys", json={"name": "k"}), 201)
        return self.client(key["secret"])

    def upload(self, content: str) -> str:
        """The id of an uploaded layout whose image is its own by `content`."""
        return self.upload_bytes(archive(self.root / f"layout-{content}", content))

    def upload_bytes(self, data: bytes) -> str:
        upload_id: str = answered(self.admin.post(f"{CORE}/sandbox/uploads", content=data), 201)["id"]
        return upload_id

    def upload_layout(self, layout: Path) -> str:
        """The id of an uploaded layout folder."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for path in sorted(layout.iterdir()):
                tar.add(path, arcname=path.name)
        return self.upload_bytes(out.getvalue())

    def register(self, name: str, content: str, **asked: Any) -> Json:
        """A release of an image, which is made when it is new. It is pending."""
        made = self.admin.post(IMAGES, json={"name": name})
        assert made.status_code in (201, 409)
        body = {"source": {"upload": self.upload(content)}, **asked}
        return answered(self.admin.post(f"{IMAGES}/{name}/releases", json=body), 201)

    def image(self, name: str, content: str | None = None, **asked: Any) -> Json:
        """The same, proved."""
        release = self.register(name, content or name, **asked)
        eventually(lambda: self.release(name, release["number"])["state"] == "active")
        return self.release(name, release["number"])

    def release(self, name: str, number: int) -> Json:
        return answered(self.admin.get(f"{IMAGES}/{name}/releases/{number}"))

    def session(self, **asked: Any) -> Json:
        """A running Session."""
        return self.until_running(answered(self.project.post(SESSIONS, json={"wait_seconds": 60, **asked}), 201))

    def until_running(self, session: Json) -> Json:
        """Wait for a Session that waits."""
        while session["status"] in ("waiting", "starting"):
            poll = {"wait": 30, "status": session["status"]}
            session = answered(self.project.get(f"{SESSIONS}/{session['id']}", params=poll))
        assert session["status"] == "running", session
        return session

    def deploy(self, **changes: Any) -> httpx.Response:
        """Write the deployment as it is, with changes."""
        now = answered(self.admin.get(f"{CORE}/sandbox/deployment"))
        now["expected_generation"] = now.pop("generation")
        return self.admin.put(f"{CORE}/sandbox/deployment", json={**now, **changes})

    def pool(self, **changes: Any) -> Json:
        """The first pool, with changes."""
        return {**answered(self.admin.get(f"{CORE}/sandbox/deployment"))["pools"][0], **changes}

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join()
        self.world.close()
        assert self.surprises == set(), "these refusals are not in openapi/"


class Documented:
    """Notes every refusal that the committed contract does not tell of."""

    def __init__(self, app: App, surprises: set[str]) -> None:
        self._app, self._surprises = app, surprises

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        status = 0

        async def comparing(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            endpoint = scope.get("endpoint")
            answers = endpoint is not None and status not in (405, 499)  # no operation answers these
            if message["type"] == "http.response.body" and status >= 400 and answers:
                code = json.loads(message["body"])["error"]["code"]
                told = _CONTRACT[endpoint.__name__]["responses"].get(str(status), {})
                if f"`{code}`" not in told.get("description", ""):
                    self._surprises.add(f"{endpoint.__name__}: {status} {code}")
            await send(message)

        await self._app(scope, receive, comparing)


_CONTRACT: Json = {
    operation["operationId"]: operation
    for operations in openapi()["paths"].values()
    for operation in operations.values()
}


def _serve(served: FastAPI, surprises: set[str]) -> tuple[uvicorn.Server, threading.Thread, str]:
    sock = socket.create_server(("127.0.0.1", 0))
    app = Watched(Documented(served, surprises))
    config = uvicorn.Config(app, loop="asyncio", lifespan="on", log_config=None, access_log=False, **exec_socket.SERVED)
    config.timeout_graceful_shutdown = 5
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([sock],))
    thread.start()
    eventually(lambda: server.started)
    return server, thread, f"http://127.0.0.1:{sock.getsockname()[1]}"


def answered(response: httpx.Response, status: int = 200) -> Json:
    """The JSON of an answer that must have this status."""
    assert response.status_code == status, response.text
    data: Json = response.json()
    return data


def refused(response: httpx.Response, status: int, code: str, param: str | None = None) -> Json:
    """The error of an answer that must say no in exactly this way."""
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error"}
    error: Json = response.json()["error"]
    assert (error["code"], error["param"]) == (code, param), error
    assert set(error) == {"type", "code", "message", "param", "details", "request_id"}
    assert error["request_id"] == response.headers["x-request-id"]
    return error
