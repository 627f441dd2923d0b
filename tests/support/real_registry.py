"""Debian's docker-registry on loopback, with a folder and a configuration of its own, ended by its pid."""

import hashlib
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import pytest

PROGRAM = "docker-registry"
needs_registry = pytest.mark.skipif(shutil.which(PROGRAM) is None, reason=f"{PROGRAM} is not installed: ./dev setup")

USER, PASSWORD = "pusher", "correct horse"
_HTPASSWD = "$2b$04$Pievur0.bZXwwHQJSUBCBu4gjgiS8UQMu7t7GQn0r.kZ9DU9UBgAC"


class RealRegistry:
    """Serving while it is entered; with `auth`, only to USER with PASSWORD."""

    def __init__(self, root: Path, *, auth: bool = False) -> None:
        root.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.host = f"127.0.0.1:{probe.getsockname()[1]}"
        lines = [
            "version: 0.1",
            "log: {level: error, accesslog: {disabled: true}}",
            f"storage: {{filesystem: {{rootdirectory: {root}/data}}, delete: {{enabled: true}}}}",
            f"http: {{addr: '{self.host}', secret: not-one}}",
        ]
        if auth:
            (root / "users").write_text(f"{USER}:{_HTPASSWD}\n")
            lines.append(f"auth: {{htpasswd: {{realm: fx, path: {root}/users}}}}")
        self.config = root / "config.yml"
        self.config.write_text("\n".join(lines))
        self._log = root / "log"
        self._login = httpx.BasicAuth(USER, PASSWORD) if auth else None

    def push(self, layout: Path, repository: str, tag: str = "latest") -> str:
        """Push all that a layout holds; its first entry gets the tag. Returns that entry's digest."""
        top = json.loads((layout / "index.json").read_text())["manifests"][0]
        documents: list[tuple[str, str, bytes]] = []
        for path in (layout / "blobs" / "sha256").iterdir():
            data, digest = path.read_bytes(), f"sha256:{path.name}"
            media = _document_type(data)
            if media is None:
                self._blob(repository, digest, data)
            else:
                documents.append((digest, media, data))
        for digest, media, data in sorted(documents, key=lambda each: "index" in each[1]):
            self._manifest(repository, digest, media, data)
            if digest == top["digest"]:
                self._manifest(repository, tag, media, data)
        found: str = top["digest"]
        return found

    def tag(self, repository: str, tag: str, media_type: str, document: bytes) -> None:
        """One more tag of a manifest whose blobs are there."""
        self._manifest(repository, tag, media_type, document)

    def push_loose(self, repository: str, data: bytes) -> str:
        """A blob that no manifest names; its digest."""
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self._blob(repository, digest, data)
        return digest

    def _blob(self, repository: str, digest: str, data: bytes) -> None:
        begun = self._http.post(f"{repository}/blobs/uploads/").raise_for_status()
        where = httpx.URL(begun.headers["location"]).copy_merge_params({"digest": digest})
        self._http.put(where, content=data).raise_for_status()

    def _manifest(self, repository: str, reference: str, media: str, data: bytes) -> None:
        url = f"{repository}/manifests/{reference}"
        self._http.put(url, content=data, headers={"Content-Type": media}).raise_for_status()

    def get(self, path: str) -> httpx.Response:
        """What it answers below /v2/."""
        return self._http.get(path, headers={"Accept": "application/vnd.oci.image.manifest.v1+json, */*"})

    def __enter__(self) -> Self:
        self._http = httpx.Client(base_url=f"http://{self.host}/v2/", auth=self._login, trust_env=False, timeout=30)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([PROGRAM, "serve", self.config], stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while True:
            try:
                self._http.get("")
                return self
            except httpx.TransportError:
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, "the registry did not start"
                time.sleep(0.02)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)


def _document_type(data: bytes) -> str | None:
    try:
        document = json.loads(data)
    except ValueError:
        return None
    if not isinstance(document, dict) or "schemaVersion" not in document:
        return None
    media: str = document["mediaType"]
    return media
