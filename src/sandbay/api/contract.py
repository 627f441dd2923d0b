"""The contract of the HTTP interface as OpenAPI 3.1: the same bytes from the same code, committed and compared."""

import json
from typing import Any

from sandbay.api.middleware import NAMESPACES
from sandbay.api.server import interface
from sandbay.domain.project import KEY_PREFIXES

_DESCRIPTION = """\
`/core/v1` takes administrator keys, `/v1` project keys; neither takes the other's. Every refusal is the envelope
`{"error": {type, code, message, param, details, request_id}}`: branch on `code` and `param`. Bodies are strict: what
is not known is refused. `X-Request-Id` is echoed, or made, in every answer. Times are RFC 3339, in UTC.\
"""


def openapi() -> dict[str, Any]:
    """The document."""
    document = interface().openapi()
    document["info"]["description"] = _DESCRIPTION
    document["components"]["securitySchemes"] = {
        kind.value: {"type": "http", "scheme": "bearer", "description": f"An API key, {KEY_PREFIXES[kind]}…"}
        for kind in NAMESPACES.values()
    }
    for path, operations in document["paths"].items():
        kind = next((kind for prefix, kind in NAMESPACES.items() if path.startswith(prefix + "/")), None)
        for operation in operations.values():
            operation["security"] = [] if kind is None else [{kind.value: []}]
    return document


def text() -> str:
    """As it is committed."""
    return json.dumps(openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
