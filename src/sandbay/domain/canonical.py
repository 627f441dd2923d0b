"""Plain data and canonical JSON: how our values are written down, compared and hashed.

`plain` and `rebuild` turn frozen dataclasses into JSON-ready data and back (cattrs does the work);
`canonical` is RFC 8785, so the same value has the same bytes in every process.
"""

import hashlib
from datetime import datetime
from typing import Any, TypeVar

import rfc8785
from cattrs import Converter

T = TypeVar("T")

_converter = Converter(forbid_extra_keys=True, detailed_validation=False)
_converter.register_unstructure_hook(datetime, datetime.isoformat)
_converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))


def plain(value: object) -> Any:
    """Dicts, lists, strings, numbers, booleans, None."""
    return _converter.unstructure(value)


def rebuild(cls: type[T], data: object) -> T:
    """Undo `plain`. Raises on data that `plain` would not have written."""
    return _converter.structure(data, cls)


def canonical(value: object) -> bytes:
    """RFC 8785 bytes of a value."""
    return rfc8785.dumps(plain(value))


def sha256(data: bytes) -> str:
    """`sha256:<64 hex>` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
