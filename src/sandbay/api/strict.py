"""Reading requests strictly: what is not understood whole is refused, with the first field at fault.

    router = APIRouter(route_class=StrictRoute)

JSON bodies are read here, bounded, before FastAPI sees them: repeated members, NaN, numbers out of range and
deep nesting do not reach a model. Unknown and repeated query parameters are refused like unknown members.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from typing import Any, ClassVar

from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from sandbay.api.wire.base import PATTERNS
from sandbay.domain.errors import Facts, Refusal, RefusedError
from sandbay.domain.reasons import Reason

BODY_BYTES = 1024 * 1024
_DEPTH = 32
_DIGITS = 40
_LONGEST_PARAM = 200

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class StrictRoute(APIRoute):
    """A route that reads its query and JSON body as described above."""

    body_bytes: ClassVar[int] = BODY_BYTES

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **{**options, "generate_unique_id_function": _operation_id})

    def get_route_handler(self) -> Handler:
        """Check before FastAPI's own handling."""
        handle = super().get_route_handler()
        known = _query_names(self.dependant)
        reads_json = self.body_field is not None

        async def strictly(request: Request) -> Response:
            check_query(request, known)
            if reads_json:
                request = _Read(request, await read_body(request, self.body_bytes))
            return await handle(request)

        return strictly


class RoomyRoute(StrictRoute):
    """As `StrictRoute`, for bodies that carry data."""

    body_bytes: ClassVar[int] = 24 * BODY_BYTES


class _Read(Request):
    """A request whose body has been read and parsed."""

    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body
        if body:
            self._json = parse(body)


def _operation_id(route: APIRoute) -> str:
    return route.name


def _query_names(dependant: Dependant) -> set[str]:
    inner = [_query_names(dependency) for dependency in dependant.dependencies]
    return {field.alias for field in dependant.query_params}.union(*inner)


def check_query(request: HTTPConnection, known: Collection[str]) -> None:
    """Refuse query parameters that are not known or come twice."""
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            raise _invalid("there is no such query parameter", name, {"known": sorted(known)})
        if count > 1:
            raise _invalid("it is given more than once", name)


async def read_body(request: Request, limit: int) -> bytes:
    """The whole JSON body, at most `limit` bytes of it. Empty is allowed: the route says whether it needs one."""
    size, chunks = 0, []
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _invalid("the body is too large", "body", {"limit_bytes": limit})
        chunks.append(chunk)
    if size and not _is_json(request.headers.get("content-type", "")):
        raise _invalid("the body must be JSON, with Content-Type: application/json", "Content-Type")
    return b"".join(chunks)


def _is_json(content_type: str) -> bool:
    kind, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    return kind.strip().lower() == "application/json" and charset in ("", "utf-8")


class _Bad:
    """Stands where a value is that no body may hold."""

    def __init__(self, why: str, member: str | None = None) -> None:
        self.why, self.member = why, member


def parse(body: bytes) -> Any:
    """JSON without the liberties that Python's parser takes. Refuses with `invalid_body`."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_members,
            parse_constant=lambda name: _Bad(f"{name} is no number of JSON"),
            parse_float=_float,
            parse_int=_int,
        )
    except UnicodeDecodeError as error:
        raise _invalid("the body is not UTF-8", "body", {"at_byte": error.start}) from error
    except json.JSONDecodeError as error:
        raise _invalid("the body is not JSON", "body", {"at_character": error.pos}) from error
    except RecursionError as error:
        raise _invalid("the body is nested too deeply", "body", {"limit": _DEPTH}) from error
    for path, bad in _faults(value, ()):
        raise _invalid(bad.why, _dotted(path))
    return value


def _members(pairs: list[tuple[str, Any]]) -> Any:
    members = dict(pairs)
    if len(members) < len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return _Bad("it is given more than once", repeated)
    return members


def _float(text: str) -> float | _Bad:
    number = float(text)
    return number if math.isfinite(number) else _Bad("the number is out of range")


def _int(text: str) -> int | _Bad:
    return int(text) if len(text) <= _DIGITS else _Bad("the number is out of range")


def _faults(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], _Bad]]:
    """In the order of the document."""
    if isinstance(value, _Bad):
        yield (path if value.member is None else (*path, value.member)), value
    elif isinstance(value, dict | list):
        if len(path) >= _DEPTH:
            yield path, _Bad("it is nested too deeply")
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in items:
            if isinstance(inner, dict | list | _Bad):
                yield from _faults(inner, (*path, str(name)))


def refusal_of(error: RequestValidationError) -> Refusal:
    """The first field at fault. What was sent there is not repeated."""
    first: Mapping[str, Any] = error.errors()[0]
    path = [str(part) for part in first["loc"][1:] if part != "[key]"]
    message = PATTERNS.get(first.get("ctx", {}).get("pattern"), str(first["msg"]).removeprefix("Value error, "))
    return Refusal(Reason.INVALID_BODY, message, _dotted(path) if path else "body")


def _dotted(path: tuple[str, ...] | list[str]) -> str:
    return ".".join(path)[:_LONGEST_PARAM] or "body"


def _invalid(message: str, param: str, details: Facts | None = None) -> RefusedError:
    return RefusedError(Reason.INVALID_BODY, message, param=param[:_LONGEST_PARAM], details=details)
