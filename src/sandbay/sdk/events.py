"""Server-sent events, as an installation sends them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.errors import BadAnswerError

MEDIA_TYPE = "text/event-stream"
SILENCE = 45.0
"""Seconds; a server that lives says so every 10."""

_LONGEST = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, or how something is now.

    kind: `state` and `progress` of one Session; `session`, `node`, `image` or `readiness`, each as it is now; `gone`
    (its data says what), and `reset`: forget what you know, everything is told again. data: its JSON.
    """

    kind: str
    data: Mapping[str, Any]


class Reader:
    """Takes bytes of a stream in pieces of any size, gives events; `last_id` is what to come back with."""

    def __init__(self, last_id: str | None = None) -> None:
        self.last_id = last_id
        self._held = b""
        self._fields: dict[str, str] = {}

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that are now whole. Raises `BadAnswerError`."""
        *lines, self._held = (self._held + data).split(b"\n")
        if len(self._held) > _LONGEST:
            raise nonsense()
        for line in lines:
            event = self._take(line.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _take(self, line: str) -> Event | None:
        """The event that this line, without its end, completes."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        try:
            data = json.loads(fields["data"])
        except ValueError as error:
            raise nonsense() from error
        if not isinstance(data, dict):
            raise nonsense()
        self.last_id = fields.get("id", self.last_id)
        return Event(fields.get("event", "message"), data)


def nonsense() -> BadAnswerError:
    """The error for what is no stream of events."""
    return BadAnswerError("the server's answer is no stream of events", code="bad_answer")
