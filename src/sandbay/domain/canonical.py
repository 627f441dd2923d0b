"""Plain data and canonical JSON: how our values are written down, compared and hashed.

`plain` and `rebuild` turn frozen dataclasses into JSON-ready data and back (cattrs does the work);
`canonical` is RFC 8785, so the same value has the same bytes in every process.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar, get_args, get_origin

import rfc8785
from cattrs import Converter

T = TypeVar("T")


def _scalar(value: Any, cls: Any) -> Any:
    """No coercion: what is of another type was not written by `plain`. A whole float is written as an integer."""
    if issubclass(cls, StrEnum):
        return cls(value)
    if type(value) is not cls and not (cls is float and type(value) is int):
        raise TypeError(f"expected {cls.__name__}, not {type(value).__name__}")
    return cls(value)


def _tuple(value: Any, cls: Any) -> Any:
    """Only from a list: a text is a sequence of texts too, and would pass for one."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"expected a list, not {type(value).__name__}")
    of = get_args(cls)
    kinds = (of[0] for _ in value) if of[1:] == (...,) else of
    return tuple(_converter.structure(item, kind) for item, kind in zip(value, kinds, strict=True))


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda cls: kind in (cls, get_origin(cls))


_converter = Converter(forbid_extra_keys=True, detailed_validation=False)
_converter.register_unstructure_hook(datetime, datetime.isoformat)
_converter.register_unstructure_hook_func(_is(frozenset), lambda items: sorted(plain(item) for item in items))
_converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
for scalar in (str, int, float, bool):
    _converter.register_structure_hook(scalar, _scalar)
_converter.register_structure_hook_func(_is(tuple), _tuple)
_converter.register_structure_hook_func(lambda cls: cls is object, lambda value, _: value)  # facts: JSON as it is


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
