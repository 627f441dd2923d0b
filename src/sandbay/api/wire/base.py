"""What all shapes share: strictness, texts and maps with bounds, pages, failures."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sandbay.api import errors
from sandbay.domain.errors import Refusal
from sandbay.domain.life import LONGEST, SHORTEST
from sandbay.domain.platform import Platform
from sandbay.domain.release import Fault
from sandbay.domain.requirement import NoRequirement, Requirement, parse_requirement
from sandbay.ports.records import Page

Item = TypeVar("Item")
Row = TypeVar("Row")

ARGUMENT_BYTES = 128 * 1024 - 1
"""The longest argument or `NAME=value` that Linux hands to a program, with its end."""

ARGUMENTS_BYTES = 512 * 1024
"""Arguments, or environment, of one call together: well below what Linux takes."""

MAP_ENTRIES = 64


class In(BaseModel):
    """A request's body or a part of it: members of exactly these names and types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Out(BaseModel):
    """An answer or a part of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Listing(Out, Generic[Item]):
    """One page of a list."""

    items: list[Item] = Field(description="In a fixed order.")
    next: str | None = Field(description="Where the next page begins: pass it as `after`. Null at the end.")


def _platform(text: str) -> str:
    if Platform.parse(text) is None:
        raise ValueError("a platform is os/architecture[/variant], such as linux/amd64")
    return text


def _requirement(text: str) -> str:
    parsed = parse_requirement(text)
    if isinstance(parsed, NoRequirement):
        raise ValueError(parsed.why)  # noqa: TRY004 - the type is right, the text is not
    return text


def sized(env: dict[str, str]) -> dict[str, str]:
    """Refuse what no program could be given."""
    sizes = {name: len(name) + len(value.encode()) + 2 for name, value in env.items()}
    for name, size in sizes.items():
        if size > ARGUMENT_BYTES:
            raise ValueError(f"{name} is larger than {ARGUMENT_BYTES} bytes")
    if sum(sizes.values()) > ARGUMENTS_BYTES:
        raise ValueError(f"the variables together are larger than {ARGUMENTS_BYTES} bytes")
    return env


NO_NUL = r"^[^\x00]*$"
_SLUG = r"^[a-z0-9][a-z0-9-]{0,62}$"
_LINE = r"^[^\x00-\x1f\x7f]+$"
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
PATTERNS = {
    NO_NUL: "it holds a NUL character",
    _SLUG: "it has lower-case letters, digits and -, at most 63, and starts with no -",
    _LINE: "it is one line without control characters",
    _VARIABLE: "the name of a variable has letters, digits and _, and starts with no digit",
}
"""What each pattern asks for, in words for people."""
Slug = Annotated[str, Field(pattern=_SLUG)]
Line = Annotated[str, Field(min_length=1, max_length=256, pattern=_LINE)]
Words = Annotated[str, Field(max_length=4096, pattern=NO_NUL)]
Reference = Annotated[str, Field(max_length=1024, pattern=NO_NUL)]
"""An image reference; which ones are well-formed is the catalog's to say (`invalid_reference`)."""
PlatformText = Annotated[str, Field(max_length=128), AfterValidator(_platform)]
Requires = Annotated[
    list[Annotated[str, Field(max_length=256, pattern=NO_NUL), AfterValidator(_requirement)]], Field(max_length=64)
]
"""Tools with PEP 440 specifiers, such as `node>=20`."""
UPGRADE = "Where `stable` is now, as `web:9`, when it is pinned to an older release; nothing moves it."
Revision = Annotated[int, Field(ge=0, le=2**53)]
Labels = Annotated[
    dict[
        Annotated[str, Field(min_length=1, max_length=128, pattern=_LINE)],
        Annotated[str, Field(max_length=4096, pattern=NO_NUL)],
    ],
    Field(max_length=MAP_ENTRIES),
]
VariableName = Annotated[str, Field(max_length=256, pattern=_VARIABLE)]
Env = Annotated[dict[VariableName, Annotated[str, Field(pattern=NO_NUL)]], AfterValidator(sized)]


def requirements_of(texts: Requires) -> tuple[Requirement, ...]:
    """As the domain has them; each text has passed for one."""
    return tuple(it for it in map(parse_requirement, texts) if isinstance(it, Requirement))


class Failure(Out):
    """Why something failed."""

    code: str = Field(description="A reason's code; branch on it.")
    message: str = Field(description="For people.")
    details: dict[str, Any] = Field(description="Facts: counts, bounds, current values.")


def failure_of(fault: Fault | None) -> Failure | None:
    """From a fault of the domain."""
    return None if fault is None else Failure(**errors.told(fault.reason, fault.message, fault.details))


class ErrorBody(Failure):
    """What was refused and why."""

    type: str = Field(description="Kind of error: invalid_request_error, conflict_error, …")
    param: str | None = Field(description="The field at fault, dotted from the body's root, or null.")
    request_id: str | None = Field(description="The request's id, as in `X-Request-Id`.")


class Envelope(Out):
    """Every answer that says no."""

    error: ErrorBody = Field(description="What was refused and why.")


class RefusalOut(Failure):
    """A refusal that is told, not raised."""

    param: str | None = Field(description="The field of the request at fault, or null.")


def refusal_of(refusal: Refusal) -> RefusalOut:
    """From a refusal of the domain."""
    return RefusalOut(**errors.told(refusal.reason, refusal.message, refusal.details), param=refusal.param)


def page(rows: Sequence[Row], asked: Page, cursor: Callable[[Row], str]) -> tuple[Sequence[Row], str | None]:
    """One page of rows that are all here, in the order of their cursors: stable while rows come and go."""
    left = sorted((row for row in rows if asked.after is None or cursor(row) > asked.after), key=cursor)
    shown = left[: asked.limit]
    return shown, cursor(shown[-1]) if len(left) > len(shown) else None


def page_of_more(rows: Sequence[Row], asked: Page, cursor: Callable[[Row], str]) -> tuple[Sequence[Row], str | None]:
    """One page of rows of which one more than asked for was read, to see whether there are more."""
    shown = rows[: asked.limit]
    return shown, cursor(shown[-1]) if len(rows) > len(shown) else None


Seconds = Annotated[int, Field(ge=SHORTEST, le=LONGEST)]
IDLE_TOLD = "Seconds without a command or a file's transfer after which it ends."
LIFE_TOLD = "Seconds from its admission after which it ends, used or not."
