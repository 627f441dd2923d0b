"""Running commands."""

import base64
import binascii
from dataclasses import replace
from signal import Signals
from typing import Annotated, Literal, Self, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from sandbay.api.wire.base import ARGUMENT_BYTES, ARGUMENTS_BYTES, NO_NUL, Env, In, Out
from sandbay.domain.command import Command, TerminalSize

SignalName = Literal["HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "TERM", "CONT", "STOP", "TSTP"]
STDIN_BYTES = 16 * 1024 * 1024
WEEK = 7 * 24 * 3600


def _fits(arguments: list[str]) -> list[str]:
    sizes = [len(argument.encode()) + 1 for argument in arguments]
    if any(size > ARGUMENT_BYTES for size in sizes):
        raise ValueError(f"an argument is larger than {ARGUMENT_BYTES} bytes")
    if sum(sizes) > ARGUMENTS_BYTES:
        raise ValueError(f"the arguments together are larger than {ARGUMENTS_BYTES} bytes")
    return arguments


def _decoded(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError("it must be base64, as text")  # noqa: TRY004 - pydantic takes a ValueError for a "no"
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("it is no base64") from error
    if len(data) > STDIN_BYTES:
        raise ValueError(f"it is larger than {STDIN_BYTES} bytes")
    return data


Arguments = Annotated[list[Annotated[str, Field(pattern=NO_NUL)]], Field(max_length=10_000), AfterValidator(_fits)]
Data = Annotated[bytes, BeforeValidator(_decoded), WithJsonSchema({"type": "string", "contentEncoding": "base64"})]


class ExecIn(In):
    """A command. `argv` and `shell` exclude each other; without both the image's own command runs."""

    argv: Arguments | None = Field(default=None, description="The program and its arguments; no shell is involved.")
    shell: Annotated[str, Field(min_length=1, max_length=ARGUMENT_BYTES // 4, pattern=NO_NUL)] | None = Field(
        default=None, description="A line for the image's /bin/sh."
    )
    entrypoint: Arguments | None = Field(
        default=None, description="Replaces the image's entrypoint; an empty one clears it."
    )
    image_command: bool = Field(
        default=False, description="Whether the image's entrypoint stands before `argv`, as when it is run."
    )
    env: Env = Field(default={}, description="Variables, over those of the Session and the image.")
    user: Annotated[str, Field(max_length=256, pattern=NO_NUL)] | None = Field(
        default=None, description="user[:group], names or numbers; the image's when omitted."
    )
    workdir: Annotated[str, Field(max_length=4096, pattern=NO_NUL)] | None = Field(
        default=None, description="Where it begins; the image's when omitted."
    )
    stdin: Data | None = Field(default=None, description="All of its standard input, base64.")
    timeout: Annotated[float, Field(gt=0, le=WEEK)] | None = Field(
        default=None, description="Seconds after which its whole tree is killed."
    )

    @field_validator("shell")
    @classmethod
    def _one_form(cls, shell: str | None, info: ValidationInfo) -> str | None:
        if shell is not None and info.data.get("argv") is not None:
            raise ValueError("argv and shell exclude each other")
        return shell

    @field_validator("entrypoint")
    @classmethod
    def _no_entrypoint_of_shell(cls, entrypoint: list[str] | None, info: ValidationInfo) -> list[str] | None:
        if entrypoint is not None and info.data.get("shell") is not None:
            raise ValueError("a shell line has no entrypoint")
        return entrypoint

    def command(self) -> Command:
        """As the domain has it."""
        return Command(
            argv=None if self.argv is None else tuple(self.argv),
            shell=self.shell,
            entrypoint=None if self.entrypoint is None else tuple(self.entrypoint),
            env=dict(self.env),
            user=self.user,
            workdir=self.workdir,
            timeout=self.timeout,
            image_entrypoint=self.image_command,
        )


class SizeIn(In):
    """Of a terminal, in characters."""

    rows: Annotated[int, Field(ge=1, le=65_535)] = TerminalSize().rows
    columns: Annotated[int, Field(ge=1, le=65_535)] = TerminalSize().columns

    def size(self) -> TerminalSize:
        """As the domain has it."""
        return TerminalSize(self.rows, self.columns)


class StartIn(In):
    """The first message of a WebSocket: the command."""

    exec: ExecIn = Field(description="The command, without `stdin`.")
    stdin: bool = Field(default=True, description="Whether stdin will be sent; without it, it is empty.")
    tty: bool = Field(default=False, description="Whether it gets a terminal; then all output is stdout.")
    size: SizeIn = Field(default=SizeIn(), description="Of the terminal.")

    def command(self) -> Command:
        """As the domain has it."""
        command = self.exec.command()
        return replace(command, terminal=self.size.size()) if self.tty else command

    @field_validator("exec")
    @classmethod
    def _no_stdin(cls, asked: ExecIn) -> ExecIn:
        if asked.stdin is not None:
            raise ValueError("stdin comes in messages of its own")
        return asked


class ControlIn(In):
    """A later text message of a WebSocket: exactly one of these."""

    eof: Literal[True] | None = Field(default=None, description="Nothing more comes on stdin.")
    credit: Annotated[int, Field(ge=1, le=2**31)] | None = Field(default=None, description="Bytes of output.")
    signal: SignalName | None = Field(default=None, description="For every process of the command's tree.")
    resize: SizeIn | None = Field(default=None, description="The terminal's new size.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1 or all(value is None for _, value in self):
            raise ValueError("a message has exactly one member: eof, credit, signal or resize")
        return self

    def number(self) -> Signals | None:
        """The signal's number."""
        return None if self.signal is None else Signals[f"SIG{self.signal}"]


Message = TypeVar("Message", bound=In)


def read_message(kind: type[Message], value: object) -> Message:
    """From JSON of a WebSocket. Raises as FastAPI does for a body."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        told = {"loc": ("body", *first["loc"]), "msg": first["msg"], "type": first["type"]}
        raise RequestValidationError([told]) from error


class ExecOut(Out):
    """How a command ended, and what it printed, as far as it was kept."""

    exit_code: int | None = Field(description="Its own, 128+n for signal n, 126, 127; null at a time-out.")
    timed_out: bool = Field(description="Whether it was stopped at its time-out.")
    stdout: str = Field(description="Standard output, base64.")
    stderr: str = Field(description="Standard error, base64.")
    stdout_bytes: int = Field(description="Bytes that it wrote, kept or not.")
    stderr_bytes: int = Field(description="Bytes that it wrote, kept or not.")
    stdout_truncated: bool = Field(description="Whether the end of the output is missing.")
    stderr_truncated: bool = Field(description="Whether the end of the output is missing.")
