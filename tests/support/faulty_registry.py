"""A small read-only registry on loopback that serves layouts and misbehaves on request.

    with FaultyRegistry(FIXTURES, {"cut": 0.6}) as registry:
        f"{registry.host}/e11-no-media-type:latest"

A repository is a folder of `root` (its layout below `layout/`, or itself one); a tag is any ref name of its index, and
`latest` is the first entry without one. `storage` is a second address, where blobs are redirected to. `seen` has every
request. Faults, which may be combined:

    cut=0.6         the first download of every blob stops after that part (Content-Length is right)
    always          and so do all that follow
    no-range        Range is ignored: 200 with the whole blob
    wrong-tail      a Range answer holds other bytes;  long-tail  more than there are;  other-range  ones from elsewhere
    flip, short     blobs with one wrong byte; blobs cut, and a Content-Length that agrees
    no-length       blobs have no Content-Length
    header-digest   Docker-Content-Digest names another document
    ctype           manifests are sent as text/plain;  ctype-index  as an index
    token=2         Bearer tokens, good for so many requests; 0 for ever
    expired-is-400  a token that is no longer good is a bad request
    basic           Basic authentication as USER with PASSWORD;  also what the token realm then wants
    realm=URL       where the token realm is said to be
    deny, forbid    401 whatever is sent; 403 for everything
    missing-name, missing-manifest
    limit=3         the first two requests of every path are 429 with Retry-After: 3;  limit-date=3, limit-bare
    skew=SECONDS    its clock is wrong by so much, in `Date` and in every other time
    busy=2          that many 503 for every path first
    redirect        blobs are 307 to the storage; redirect-loop, redirect-file, redirect-to=URL
    hold=EVENT      each blob of more than 64 KiB stops halfway until the event is set
    tags=[…]        a page of three tags at a time, wherever an opaque Link leads; without it there is no list
    link=TEXT       what every Link says instead
    drip            blobs one byte at a time, slowly;  silent  nothing at all after the headers
    drip-head       status lines and headers one byte at a time;  interim  many answers that another one will come
    drip-chunks     blobs in chunks whose sizes come one byte at a time
    huge            manifests never end
"""

import base64
import email.utils
import hashlib
import http.server
import itertools
import json
import os
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

Faults = Mapping[str, Any]
REF_NAME = "org.opencontainers.image.ref.name"
USER, PASSWORD = "fx-puller", "hush-hush"
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


class FaultyRegistry:
    """Serving while it is entered."""

    def __init__(self, root: Path, faults: Faults | None = None, certificate: Path | None = None) -> None:
        """With a certificate (and its key, as PEM), the registry speaks TLS; the storage does not."""
        self.root, self.faults = root, dict(faults or {})
        self.seen: list[dict[str, Any]] = []
        self.tokens: dict[str, int] = {}
        self.lock = threading.Lock()
        self.times: Counter[object] = Counter()
        self.closing = threading.Event()
        self._servers = [_Server(self), _Server(self)]
        self.host, self.storage = (f"127.0.0.1:{server.server_address[1]}" for server in self._servers)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._servers[0].socket = context.wrap_socket(self._servers[0].socket, server_side=True)
        self._threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in self._servers]

    def count(self, *key: object) -> int:
        """How many times this has happened, this time included."""
        with self.lock:
            self.times[key] += 1
            return self.times[key]

    def asked(self, part: str) -> list[dict[str, Any]]:
        """The requests whose path holds this."""
        return [request for request in self.seen if part in request["path"]]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, registry: FaultyRegistry) -> None:
        self.registry = registry
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is no fault here."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def now(self) -> float:
        """The time as this registry has it."""
        return time.time() + float(self.faults.get("skew", 0))

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(self.now() if timestamp is None else timestamp)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        return

    @property
    def registry(self) -> FaultyRegistry:
        server = self.server
        assert isinstance(server, _Server)
        return server.registry

    @property
    def at_storage(self) -> bool:
        return self.server is not self.registry._servers[0]

    @property
    def faults(self) -> Faults:
        return self.registry.faults

    def answer(
        self,
        code: int,
        body: bytes = b"",
        ctype: str = "application/json",
        length: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        with self.registry.lock:
            self.registry.seen.append(
                {
                    "storage": self.at_storage,
                    "method": self.command,
                    "path": self.path,
                    "status": code,
                    "authorization": self.headers.get("Authorization"),
                    "range": self.headers.get("Range"),
                    "accept": self.headers.get("Accept"),
                }
            )
        self.send_response(code)
        self.send_header("Content-Type", ctype)
        blob = code in (200, 206) and ctype == "application/octet-stream"
        if "interim" in self.faults:
            self._dripped(itertools.repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n", 200))
        if blob and "no-length" in self.faults:
            self.close_connection = True
        elif blob and "drip-chunks" in self.faults and self.command != "HEAD":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self._body(body, blob=blob)
        if length is not None and length != len(body):
            self.close_connection = True

    def _body(self, body: bytes, *, blob: bool) -> None:
        if blob and "silent" in self.faults:
            self.registry.closing.wait()
        elif "hold" in self.faults and len(body) > 64 * 1024:
            self.wfile.write(body[: len(body) // 2])
            while not self.faults["hold"].wait(0.05) and not self.registry.closing.is_set():
                pass
            self.wfile.write(body[len(body) // 2 :])
        elif blob and "drip-chunks" in self.faults:
            self._dripped(b"%x;" % len(body) + b"x" * 400 + b"\r\n" + body + b"\r\n0\r\n\r\n")
        elif blob and "drip" in self.faults:
            self._dripped(body)
        else:
            self.wfile.write(body)

    def _dripped(self, data: bytes | Iterable[bytes]) -> None:
        """One byte at a time, or one piece."""
        for piece in (data[at : at + 1] for at in range(len(data))) if isinstance(data, bytes) else data:
            self.wfile.write(piece)
            if self.registry.closing.wait(0.05):
                self.close_connection = True
                return

    def flush_headers(self) -> None:
        if "drip-head" in self.faults:
            head = b"".join(self._headers_buffer)
            self._headers_buffer: list[bytes] = []
            self._dripped(head)
        else:
            super().flush_headers()

    def error(self, code: int, name: str, headers: Mapping[str, str] | None = None) -> None:
        document = {"errors": [{"code": name, "message": "words of the registry", "detail": None}]}
        self.answer(code, json.dumps(document).encode(), headers=headers)

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/token":
            self._token()
        elif self.at_storage:
            name, _, digest = path.strip("/").partition("/")
            self._blob(name, digest)
        elif not self._in_the_way():
            self._serve(path)

    do_HEAD = do_GET  # noqa: N815 - the base class's name

    def _token(self) -> None:
        if "basic" in self.faults and self.headers.get("Authorization") != BASIC:
            self.error(401, "UNAUTHORIZED")
            return
        token = hashlib.sha256(os.urandom(8)).hexdigest()[:24]
        self.registry.tokens[token] = int(self.faults.get("token") or 1_000_000)
        self.answer(200, json.dumps({"token": token, "expires_in": 300}).encode())

    def _in_the_way(self) -> bool:
        """Answer what stands before everything else."""
        faults, registry = self.faults, self.registry
        if "forbid" in faults:
            self.error(403, "DENIED")
            return True
        for name in ("limit", "limit-date", "limit-bare"):
            if name in faults and registry.count(name, self.path) <= 2:
                wait = int(faults[name] or 0)
                date = email.utils.formatdate(self.now() + wait, usegmt=True)
                said = {"limit": {"Retry-After": str(wait)}, "limit-date": {"Retry-After": date}}.get(name, {})
                self.error(429, "TOOMANYREQUESTS", said)
                return True
        if "busy" in faults and registry.count("busy", self.path) <= faults["busy"]:
            self.error(503, "UNAVAILABLE")
            return True
        return self._unauthorized()

    def _unauthorized(self) -> bool:
        given = self.headers.get("Authorization")
        if "token" in self.faults or "deny" in self.faults:
            token = (given or "").removeprefix("Bearer ")
            left = self.registry.tokens.get(token, 0)
            self.registry.tokens[token] = left - 1
            if left > 0 and "deny" not in self.faults:
                return False
            if given and "expired-is-400" in self.faults:
                self.error(400, "BAD_REQUEST")
                return True
            realm = self.faults.get("realm", f"http://{self.registry.host}/token")
            challenge = f'Bearer realm="{realm}",service="fx",scope="repository:fx:pull"'
        elif "basic" in self.faults and given != BASIC:
            challenge = 'Basic realm="fx"'
        else:
            return False
        self.error(401, "UNAUTHORIZED", {"WWW-Authenticate": challenge})
        return True

    def _serve(self, path: str) -> None:
        if path.endswith("/tags/list") and "tags" in self.faults:
            self._tags()
            return
        match = re.fullmatch(r"/v2/([a-z0-9/-]+)/(manifests|blobs)/([A-Za-z0-9_.:-]+)", path)
        if match is None or "missing-name" in self.faults or not _home(self.registry.root, match[1]).is_dir():
            self.error(404, "NAME_UNKNOWN")
        elif match[2] == "manifests":
            self._manifest(_home(self.registry.root, match[1]), match[3])
        else:
            self._redirected(match[1], match[3])

    def _tags(self) -> None:
        query = urlsplit(self.path).query
        at = int(query.removeprefix("next=%2F").removesuffix("%3D%3D")) if query.startswith("next=") else 0
        tags = self.faults["tags"]
        link = self.faults.get("link", f'</v2/fx/tags/list?next=%2F{at + 3}%3D%3D>; rel="next"')
        more = at + 3 < len(tags) or "link" in self.faults
        body = json.dumps({"name": "fx", "tags": tags[at : at + 3]}).encode()
        self.answer(200, body, headers={"Link": link} if more else {})

    def _redirected(self, name: str, digest: str) -> None:
        to = {
            "redirect": f"http://{self.registry.storage}/{name}/{digest}",
            "redirect-loop": f"{self.path}?again",
            "redirect-file": "file:///etc/passwd",
            "redirect-to": str(self.faults.get("redirect-to")),
        }
        for fault, location in to.items():
            if fault in self.faults:
                self.answer(307, headers={"Location": location})
                return
        self._blob(name, digest)

    def _manifest(self, home: Path, reference: str) -> None:
        if "huge" in self.faults:
            self.answer(200, b'{"a":"' + b" " * (5 * 1024 * 1024), length=10**12)
            return
        media = None
        if ":" not in reference:
            listed = json.loads((home / "index.json").read_text())["manifests"]
            found = [m for m in listed if m.get("annotations", {}).get(REF_NAME, "latest") == reference]
            reference, media = (found[0]["digest"], found[0]["mediaType"]) if found else ("", None)
        body = None if "missing-manifest" in self.faults else _read(home, reference)
        if body is None:
            self.error(404, "MANIFEST_UNKNOWN")
            return
        media = json.loads(body).get("mediaType") or media or "application/vnd.oci.image.manifest.v1+json"
        media = "text/plain" if "ctype" in self.faults else media
        media = "application/vnd.oci.image.index.v1+json" if "ctype-index" in self.faults else media
        shown = "sha256:" + "0" * 64 if "header-digest" in self.faults else reference
        self.answer(200, body, media, headers={"Docker-Content-Digest": shown})

    def _blob(self, name: str, digest: str) -> None:
        body = _read(_home(self.registry.root, name), digest)
        if body is None:
            self.error(404, "BLOB_UNKNOWN")
            return
        if "flip" in self.faults:
            body = body[: len(body) // 2] + bytes([body[len(body) // 2] ^ 1]) + body[len(body) // 2 + 1 :]
        if "short" in self.faults:
            body = body[: max(1, len(body) - 10)]
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if asked and "no-range" not in self.faults:
            self._part(body, int(asked[1]))
            return
        first = self.command == "GET" and ("always" in self.faults or self.registry.count("cut", digest) == 1)
        if "cut" in self.faults and first:
            self.answer(200, body[: int(len(body) * self.faults["cut"])], "application/octet-stream", len(body))
            return
        self.answer(200, body, "application/octet-stream", headers={"Docker-Content-Digest": digest})

    def _part(self, body: bytes, start: int) -> None:
        if start >= len(body):
            self.answer(416, headers={"Content-Range": f"bytes */{len(body)}"})
            return
        part = body[start:]
        if "wrong-tail" in self.faults:
            part = bytes(byte ^ 1 for byte in part)
        if "long-tail" in self.faults:
            part += b"more"
        shown = start + ("other-range" in self.faults)
        headers = {"Content-Range": f"bytes {shown}-{len(body) - 1}/{len(body)}"}
        self.answer(206, part, "application/octet-stream", headers=headers)


def _home(root: Path, name: str) -> Path:
    folder = root / name
    return folder / "layout" if (folder / "layout").is_dir() else folder


def _read(home: Path, digest: str) -> bytes | None:
    if not re.fullmatch(r"[a-z0-9]+:[0-9a-f]{32,128}", digest):
        return None
    path = home / "blobs" / digest.replace(":", "/")
    return path.read_bytes() if path.is_file() else None
