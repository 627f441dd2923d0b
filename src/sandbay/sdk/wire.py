"""From JSON to dataclasses: fields by name, unknown members ignored, missing ones a `BadAnswerError`."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sandbay.sdk.errors import BadAnswerError

Made = TypeVar("Made")
Item = TypeVar("Item")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource:
    """What an installation says of one thing. `raw` is the JSON as it came, newer members included."""

    raw: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)


def take(kind: type[Made], data: Any, **convert: Callable[[Any], Any]) -> Made:
    """Make `kind` from an object of JSON. A converter sees its member's value, unless that is null."""
    if not isinstance(data, dict):
        raise BadAnswerError(f"the server's answer is no {kind.__name__}", code="bad_answer")
    values: dict[str, Any] = {"raw": data} if issubclass(kind, Resource) else {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name == "raw":
            continue
        if field.name in data:
            value, converter = data[field.name], convert.get(field.name)
            values[field.name] = value if converter is None or value is None else converter(value)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise BadAnswerError(f"the server's {kind.__name__} has no {field.name}", code="bad_answer")
    return kind(**values)


def each(convert: Callable[[Any], Item]) -> Callable[[Any], tuple[Item, ...]]:
    """A converter for a list."""

    def converter(values: Any) -> tuple[Item, ...]:
        if not isinstance(values, list):
            raise BadAnswerError("the server's answer has no list where one belongs", code="bad_answer")
        return tuple(convert(value) for value in values)

    return converter


def moment(text: Any) -> dt.datetime:
    """A converter for a time in RFC 3339."""
    try:
        return dt.datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise BadAnswerError("the server's answer has no time where one belongs", code="bad_answer") from error
