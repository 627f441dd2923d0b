"""The tags of a repository, page by page: where the next page is, the registry alone says."""

import re

import httpx

from sandbay.domain.reasons import Reason
from sandbay.engine.documents import read_document
from sandbay.engine.registry.client import RegistryClient

_PAGE = 1_000
_PAGES = 25
_MOST = 5_000
_BYTES = 1024 * 1024
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def list_tags(client: RegistryClient, page: int = _PAGE) -> list[str]:
    """Its tags, each once, as the registry orders them; the first few thousand. What is no tag is left out.

    Each page is asked for once. Refuses by the group transfer, and with `malformed_manifest` what is no list.
    """
    found: dict[str, None] = {}
    at: str | httpx.URL | None = f"tags/list?n={page}"
    for _ in range(_PAGES):
        if at is None or len(found) >= _MOST:
            break
        data, at = client.page(at, _BYTES)
        names = read_document(data, Reason.MALFORMED_MANIFEST, "list of tags").texts("tags") or ()
        found |= dict.fromkeys(name for name in names if _TAG.fullmatch(name))
    return list(found)[:_MOST]
