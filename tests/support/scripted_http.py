"""A small HTTP server on loopback that answers as it is told, real sockets and all."""

import base64
import contextlib
import dataclasses
import hashlib
import http.server
import json
import struct
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def what(self) -> str:
        return f"{self.method} {self.path}"


@dataclasses.dataclass(frozen=True)
class Answer:
    """What to send: `body` whole, or `pieces` one by one as chunks; `drop` cuts the connection after that.

    `messages` make it a WebSocket, and are sent when the command and its stdin have come; without them an upgrade is
    answered as any other request.
    """

    status: int = 200
    body: Any = None
    pieces: Iterable[bytes] | None = None
    messages: Iterable[bytes | str] | None = None
    type: str = "application/json"
    drop: bool = False


def refusal(status: int, code: str, kind: str = "invalid_request_error", **more: Any) -> Answer:
    envelope: dict[str, Any] = {"type": kind, "code": code, "message": f"because {code}", "param": None, "details": {}}
    return Answer(status, {"error": {**envelope, "request_id": "req_1", **more}})


def page(*items: Any, following: str | None = None) -> Answer:
    return Answer(body={"items": list(items), "next": following})


def ended(exit_code: int | None = 0, *, timed_out: bool = False) -> str:
    """The last message about a command."""
    return json.dumps({"exit": exit_code, "timed_out": timed_out, "truncated": False})


Script = Callable[[Asked], Answer]


class ScriptedServer(http.server.ThreadingHTTPServer):
    """`asked` holds every request in the order of arrival, `gone` is set when a streamed answer found no reader."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.asked: list[Asked] = []
        self.gone = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def whats(self) -> list[str]:
        return [asked.what for asked in self.asked]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _scripted(self) -> ScriptedServer:
        assert isinstance(self.server, ScriptedServer)
        return self.server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def _serve(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape"))
        asked = Asked(self.command, parts.path, query, headers, self._body(headers))
        self._scripted.asked.append(asked)
        answer = self._scripted.script(asked)
        if answer.messages is not None:
            self._converse(asked, answer.messages)
        elif answer.pieces is not None:
            self._send_pieces(answer, answer.pieces)
        elif not answer.drop:
            self._send_whole(answer)
        self.close_connection = self.close_connection or answer.drop

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the base class's names

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _converse(self, asked: Asked, messages: Iterable[bytes | str]) -> None:
        """Upgrade, read the command (it becomes the request's body), say the messages, close."""
        self.close_connection = True
        key = asked.headers["sec-websocket-key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key, usedforsecurity=False).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)):
            self.send_header(name, value)
        self.end_headers()
        start = json.loads(self._message()[1])
        body = start["exec"]
        if start["stdin"]:
            stdin = b"".join(data[1:] for kind, data in iter(self._message, (_TEXT, b'{"eof":true}')))
            body["stdin"] = base64.b64encode(stdin).decode()
        where = self._scripted.asked.index(asked)
        self._scripted.asked[where] = dataclasses.replace(asked, body=json.dumps(body).encode())
        try:
            for message in messages:
                kind, data = (_TEXT, message.encode()) if isinstance(message, str) else (_BINARY, message)
                self.wfile.write(_head(kind, len(data)) + data)
            self.wfile.write(_head(_CLOSE, 2) + b"\x03\xe8")
            while self._message()[0] != _CLOSE:
                pass
        except (OSError, struct.error):
            self._scripted.gone.set()

    def _message(self) -> tuple[int, bytes]:
        """One message of a client, whole and masked as clients send them. Raises `struct.error` at the end."""
        kind, length = struct.unpack(">BB", self.rfile.read(2))
        form = {126: ">H", 127: ">Q"}.get(length & 127)
        size = length & 127 if form is None else struct.unpack(form, self.rfile.read(struct.calcsize(form)))[0]
        mask, data = self.rfile.read(4), self.rfile.read(size)
        return kind & 15, bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))

    def _send_whole(self, answer: Answer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_pieces(self, answer: Answer, pieces: Iterable[bytes]) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for piece in pieces:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            if not answer.drop:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self._scripted.gone.set()
            self.close_connection = True


_TEXT, _BINARY, _CLOSE = 1, 2, 8


def _head(kind: int, size: int) -> bytes:
    """What stands before a server's message."""
    if size < 126:
        return struct.pack(">BB", 128 | kind, size)
    return struct.pack(">BBH", 128 | kind, 126, size) if size < 1 << 16 else struct.pack(">BBQ", 128 | kind, 127, size)


@contextlib.contextmanager
def scripted(script: Script) -> Iterator[ScriptedServer]:
    with ScriptedServer(script) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


SESSION = "ses_00000000000000000001"
DIGEST = "sha256:" + "a" * 64


def session(status: str = "running", **more: Any) -> dict[str, Any]:
    """The session resource of the HTTP contract."""
    image = {
        "id": "img_1",
        "name": "web",
        "reference": "web:stable",
        "release": 3,
        "release_id": "rel_3",
        "digest": DIGEST,
        "index_digest": None,
        "platform": "linux/amd64",
        "decided_by": {"level": "session", "subject": None},
    }
    return {
        "id": SESSION,
        "status": status,
        "image": image,
        "trail": [
            {"level": "session", "outcome": "chosen", "subject": None, "said": "web:stable", "reason": None},
        ],
        "created_at": "2026-01-02T03:04:05Z",
        "ended_at": None,
        "waiting_for": None,
        "wait_until": None,
        "progress": None,
        "network": "disabled",
        "resources": {"cpus": 1, "memory": 1 << 30, "pids": 512},
        "metadata": {},
        "reason": None,
        **more,
    }
