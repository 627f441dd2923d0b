"""An OCI registry as an image source, over HTTPS; in the clear only where the installation lists the host.

RegistrySources(Trust(["127.0.0.1:5000"])).source(reference, credentials).read(wanted, blobs, progress)
"""

import ssl
from collections.abc import Generator
from difflib import get_close_matches

import httpx

from sandbay.domain.canonical import sha256
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference
from sandbay.domain.registry import Credentials
from sandbay.domain.release import Variant
from sandbay.engine.documents import read_document
from sandbay.engine.flights import Flights
from sandbay.engine.intake import Origin, take_in
from sandbay.engine.limits import Limits
from sandbay.engine.manifest import Descriptor, IndexEntry
from sandbay.engine.media import DOCUMENTS, LAYERS, OCI_INDEX, OCI_MANIFEST
from sandbay.engine.registry.auth import Auth
from sandbay.engine.registry.client import Fetched, RegistryClient
from sandbay.engine.registry.pace import Pace
from sandbay.engine.registry.tags import list_tags
from sandbay.engine.registry.trust import Trust
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import ImageSource, Progress, Wanted

_LATEST = "latest"
_LANES = 3
_AGAIN = 2
_SHOWN = 140
_SUGGESTED = 10


class RegistrySources:
    """The port `registries`."""

    def __init__(self, trust: Trust, pace: Pace | None = None, limits: Limits | None = None) -> None:
        """What a registry asks of our pace, and what is under way, is shared by all sources of this object."""
        self._trust, self._pace, self._limits = trust, pace or Pace(), limits or Limits()
        self._flights = Flights()

    def source(self, reference: OciReference, credentials: Credentials | None) -> ImageSource:
        """See the port."""
        return _RegistrySource(reference, credentials, self._trust, self._pace, self._limits, self._flights)


class _RegistrySource:
    def __init__(
        self,
        reference: OciReference,
        credentials: Credentials | None,
        trust: Trust,
        pace: Pace,
        limits: Limits,
        flights: Flights,
    ) -> None:
        self._reference, self._credentials = reference, credentials
        self._trust, self._pace, self._limits, self._flights = trust, pace, limits, flights

    def read(self, wanted: Wanted, blobs: Blobs, progress: Progress) -> tuple[Variant, ...]:
        """Resolve the tag to a digest once, and from there on go by digests. Also refuses by the group transfer."""
        reference, patience = self._reference, self._pace.patience
        registry = reference.domain.lower()
        auth = Auth(registry, reference.path, self._credentials, self._trust)
        timeout = httpx.Timeout(patience.read, connect=patience.connect)
        # The system's certificates, as an operator extends them; httpx brings others of its own.
        with httpx.Client(verify=ssl.create_default_context(), timeout=timeout, follow_redirects=False) as http:
            client = RegistryClient(http, registry, reference.path, auth, self._trust, self._pace)
            fetched = self._fetched(client)
            found = sha256(fetched.data)
            for said in (reference.digest, fetched.digest):
                if said and said != found:
                    raise _another(said, found)
            top = _described(fetched, found)
            origin = _Remote(client, {top.digest: fetched.data}, self._flights)
            entry = IndexEntry(top, None, None)
            return take_in((entry,), origin, Wanted(wanted.platforms), blobs, progress, self._limits)

    def _fetched(self, client: RegistryClient) -> Fetched:
        """What the reference means. Of a tag that is not there, the refusal tells which are."""
        tag = self._reference.tag or _LATEST
        try:
            return client.manifest(self._reference.digest or tag, self._limits.manifest_bytes)
        except RefusedError as error:
            if error.refusal.reason is Reason.MANIFEST_MISSING and self._reference.digest is None:
                raise _no_such_tag(client, tag, error) from error
            raise


class _Remote(Origin):
    """The blobs of one repository."""

    lanes = _LANES

    def __init__(self, client: RegistryClient, documents: dict[str, bytes], flights: Flights) -> None:
        self._client, self._documents, self.flights = client, documents, flights
        self._pieced: set[str] = set()
        self._anew: dict[str, int] = {}

    def check(self, blob: Descriptor) -> None:
        """Nothing that a registry says of a blob counts; its bytes do."""

    def chunks(self, blob: Descriptor) -> Generator[bytes]:
        """As they come; documents, which are small, are asked for once."""
        known = self._documents.get(blob.digest)
        if known is not None:
            yield known
            return
        folder = "manifests" if blob.media_type in DOCUMENTS else "blobs"
        path = f"{folder}/{blob.digest}"
        kept: list[bytes] | None = None if blob.media_type in LAYERS else []
        for chunk in self._client.chunks(path, blob, lambda: self._pieced.add(blob.digest)):
            if kept is not None:
                kept.append(chunk)
            yield chunk
        if kept is not None:
            self._documents[blob.digest] = b"".join(kept)

    def again(self, blob: Descriptor) -> bool:
        """A resumed transfer may have gone on with other bytes: what came in one piece is what the source has."""
        self._documents.pop(blob.digest, None)
        if blob.digest not in self._pieced:
            return False
        self._pieced.discard(blob.digest)
        self._anew[blob.digest] = self._anew.get(blob.digest, 0) + 1
        return self._anew[blob.digest] <= _AGAIN


def _described(fetched: Fetched, digest: str) -> Descriptor:
    """The descriptor that an index would have for it. The document's own word on its type goes before the answer's.

    Where both are types that we know and they differ, the reading refuses it: nobody could say which it is.
    """
    document = read_document(fetched.data, Reason.MALFORMED_MANIFEST, "manifest")
    own = document.text("mediaType", "")
    if fetched.media_type in DOCUMENTS or not own:
        guess = OCI_INDEX if "manifests" in document.members else OCI_MANIFEST
        said = fetched.media_type if fetched.media_type.startswith("application/vnd.") else guess
    else:
        said = own
    return Descriptor(said, digest, len(fetched.data))


def _no_such_tag(client: RegistryClient, tag: str, missing: RefusedError) -> RefusedError:
    """The refusal with the tags that are most like it, or some, as far as the registry tells."""
    try:
        known = list_tags(client)
    except RefusedError:
        return missing
    alike = get_close_matches(tag, known, _SUGGESTED) or known[:_SUGGESTED]
    details = {**missing.refusal.details, "tag": tag, "tags": alike}
    message = f"{missing.refusal.message}; of its tags: {', '.join(alike)}" if alike else missing.refusal.message
    return RefusedError(Reason.MANIFEST_MISSING, message, details=details)


def _another(said: str, found: str) -> RefusedError:
    """The bytes are not those that were asked for, or that the registry says they are: some hand out two for one."""
    return RefusedError(
        Reason.DIGEST_MISMATCH,
        f"the bytes of {said[:_SHOWN]} are those of {found}",
        details={"digest": said[:_SHOWN], "found": found},
    )
