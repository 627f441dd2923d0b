"""JSON that strangers wrote, read strictly: one meaning or none.

Duplicate members, numbers that are none, text that is no Unicode and deep nesting are refused, because two
readers would understand them differently.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason

MAX_DEPTH = 64
_DIGITS = 40

# A string may lack its end here: that is json's to say, and makes no string be scanned twice.
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON object on its way in; `reason` and `what` say how its faults are named."""

    members: Mapping[str, Any]
    reason: Reason
    what: str

    def fault(self, why: str) -> RefusedError:
        """The refusal for a fault of this document."""
        return RefusedError(self.reason, f"{self.what}: {why}")

    def has(self, name: str) -> bool:
        """Whether the member is there and not null."""
        return self.members.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A string member; absent or null means `default`, or a fault when there is none."""
        value = self.members.get(name)
        if value is None and default is not None:
            return default
        return self._text(value, name)

    def number(self, name: str) -> int:
        """A whole number that is not negative."""
        value = self.members.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.fault(f"{name} must be a whole number")
        return value

    def flag(self, name: str) -> bool:
        """A boolean member; absent or null means false."""
        value = self.members.get(name, False)
        if not isinstance(value, bool | None):
            raise self.fault(f"{name} must be true or false")
        return bool(value)

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of strings, or None when it is absent or null."""
        if not self.has(name):
            return None
        return tuple(self._text(value, f"{name}[]") for value in self._list(name))

    def part(self, name: str) -> "Document | None":
        """An object inside this one, or None when it is absent or null."""
        return self._object(self.members[name], name) if self.has(name) else None

    def parts(self, name: str) -> "tuple[Document, ...]":
        """A list of objects. It must be there."""
        return tuple(self._object(value, f"{name}[]") for value in self._list(name))

    def _object(self, value: object, name: str) -> "Document":
        if not isinstance(value, dict):
            raise self.fault(f"{name} must be an object")
        return Document(value, self.reason, f"{self.what}, {name}")

    def _list(self, name: str) -> Sequence[Any]:
        value = self.members.get(name)
        if not isinstance(value, list):
            raise self.fault(f"{name} must be a list")
        return value

    def _text(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise self.fault(f"{name} must be a string")
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise self.fault(f"{name} must be Unicode text without NUL")
        return value


def read_document(data: bytes, reason: Reason, what: str) -> Document:
    """Parse one JSON object. Refuses with `reason`; the caller has bounded the size."""
    value = _read(data, reason, what)
    if not isinstance(value, dict):
        raise Document({}, reason, what).fault("it must be an object")
    return Document(value, reason, what)


def read_documents(data: bytes, reason: Reason, what: str) -> tuple[Document, ...]:
    """Parse a JSON list of objects, as `read_document` does one."""
    return Document({"it": _read(data, reason, what)}, reason, what).parts("it")


def _read(data: bytes, reason: Reason, what: str) -> object:
    empty = Document({}, reason, what)
    if _too_deep(data):
        raise empty.fault(f"it is nested deeper than {MAX_DEPTH}")
    try:
        value: object = json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique, parse_int=_whole, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise empty.fault(f"it is no JSON: {error}") from None
    return value


def _too_deep(data: bytes) -> bool:
    """Whether it nests deeper than the bound, found without recursion."""
    depth = 0
    for token in _TOKENS.finditer(data):
        first = token[0][:1]
        if first != b'"':
            depth += 1 if first in b"[{" else -1
            if depth > MAX_DEPTH:
                return True
    return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands there twice")
    return members


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number has more than {_DIGITS} digits")
    return int(digits)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")
