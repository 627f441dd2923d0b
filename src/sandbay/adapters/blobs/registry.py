"""The blob store of one installation as a repository of an OCI registry that it pushes to.

Each blob is held by a small manifest of ours, its keeper, under the tag `INSTALLATION.HEX`: it keeps the registry's
garbage collection from taking the blob, and names the installation that wants it. Nothing else in the registry is
ours to delete.
"""

import io
import ssl
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self, cast

import httpx

from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference
from sandbay.domain.registry import Credentials
from sandbay.engine.digest import CHUNK, hex_of, verified
from sandbay.engine.durable import make_folder, room
from sandbay.engine.manifest import Descriptor
from sandbay.engine.media import OCI_MANIFEST
from sandbay.engine.registry.auth import Auth
from sandbay.engine.registry.client import RegistryClient
from sandbay.engine.registry.pace import Pace
from sandbay.engine.registry.push import PIECE, push_blob, push_manifest
from sandbay.engine.registry.trust import Trust

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LABEL = "io.sandbay.installation"
"""The annotation of a keeper that says whose it is."""

_ANY = "application/octet-stream"
_NOTHING = b"{}"
_EMPTY = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": sha256(_NOTHING), "size": len(_NOTHING)}


class RegistryBlobs:
    """The port `blobs` in a repository, open while it is entered. Several processes may share it."""

    def __init__(
        self,
        place: OciReference,
        installation: str,
        credentials: Callable[[], Credentials | None],
        trust: Trust,
        scratch: Path,
        pace: Pace | None = None,
    ) -> None:
        """Nothing is asked yet. `credentials` is asked at each use, so that new ones count at once.

        In `scratch` lies what is on its way, as files without a name: nothing of them survives the process.
        """
        self._scratch = make_folder(scratch)
        self._registry, self._repository = place.domain.lower(), place.path
        self._installation, self._credentials = installation, credentials
        self._trust, self._pace = trust, pace or Pace()
        patience = self._pace.patience
        timeout = httpx.Timeout(patience.read, connect=patience.connect)
        # The system's certificates, as an operator extends them; httpx brings others of its own.
        self._http = httpx.Client(verify=ssl.create_default_context(), timeout=timeout, follow_redirects=False)
        self._lock = threading.Lock()
        self._opened = self._open(None)
        self._known: Credentials | None = None
        self._pieced: set[str] = set()

    def has(self, digest: str) -> bool:
        """Whether the blob is there, and kept for us."""
        keeper = f"manifests/{self._tag(digest)}"
        client = self._client()
        return client.size(keeper) is not None and client.size(f"blobs/{digest}") is not None

    def put(self, digest: str, size: int, chunks: Iterable[bytes]) -> None:
        """Store a blob, verified before any of it is sent. Also refuses by the group transfer.

        All chunks are read and judged also when the registry has the blob, whoever pushed it.
        """
        tag, stream, client = self._tag(digest), verified(chunks, digest, size), self._client()
        if client.size(f"blobs/{digest}") == size:
            for _ in stream:
                pass
        else:
            with room(self._scratch, size), self._whole(stream) as file:
                push_blob(client, digest, size, file)
        if client.size(f"blobs/{sha256(_NOTHING)}") is None:
            push_blob(client, sha256(_NOTHING), len(_NOTHING), io.BytesIO(_NOTHING))
        push_manifest(client, tag, OCI_MANIFEST, self._keeper(digest, size))

    def open(self, digest: str) -> BinaryIO:
        """Read a blob from its start. Refuses with `blob_missing`, or by the group transfer, which reading may, too."""
        size, client = self.size(digest), self._client()
        self._pieced.discard(digest)
        pieces = client.chunks(f"blobs/{digest}", Descriptor(_ANY, digest, size), lambda: self._pieced.add(digest))
        return io.BufferedReader(_Reading(pieces), CHUNK)

    def pieced(self, digest: str) -> bool:
        """Whether the last reading of it was resumed."""
        return digest in self._pieced

    def size(self, digest: str) -> int:
        """Bytes of a blob. Refuses with `blob_missing`, or by the group transfer."""
        hex_of(digest)
        size = self._client().size(f"blobs/{digest}")
        if size is None:
            message = f"the blob {digest} is not in {self._registry}/{self._repository}"
            raise RefusedError(Reason.BLOB_MISSING, message, details={"digest": digest})
        return size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    @contextmanager
    def _whole(self, stream: Iterable[bytes]) -> Iterator[BinaryIO]:
        """All bytes, verified, to be read as often as the registry loses them. Small ones stay in memory."""
        with tempfile.SpooledTemporaryFile(PIECE, dir=str(self._scratch)) as file:
            for chunk in stream:
                file.write(chunk)
            yield cast("BinaryIO", file)

    def _tag(self, digest: str) -> str:
        return f"{self._installation}.{hex_of(digest)}"

    def _keeper(self, digest: str, size: int) -> bytes:
        return canonical(
            {
                "schemaVersion": 2,
                "mediaType": OCI_MANIFEST,
                "artifactType": "application/vnd.sandbay.blob",
                "config": _EMPTY,
                "layers": [{"mediaType": _ANY, "digest": digest, "size": size}],
                "annotations": {LABEL: self._installation},
            }
        )

    def _client(self) -> RegistryClient:
        now = self._credentials()
        with self._lock:
            if now != self._known:
                self._opened, self._known = self._open(now), now
            return self._opened

    def _open(self, credentials: Credentials | None) -> RegistryClient:
        auth = Auth(self._registry, self._repository, credentials, self._trust, "pull,push")
        return RegistryClient(self._http, self._registry, self._repository, auth, self._trust, self._pace)


class _Reading(io.RawIOBase):
    """Bytes as they come from the registry, as a file."""

    def __init__(self, pieces: Generator[bytes]) -> None:
        self._pieces, self._left = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
        into = memoryview(buffer).cast("B")
        taken = min(len(into), len(self._left))
        into[:taken] = self._left[:taken]
        self._left = self._left[taken:]
        return taken

    def close(self) -> None:
        self._pieces.close()
        super().close()
