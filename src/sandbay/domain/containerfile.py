"""A Containerfile, read as far as it decides what goes into an image, and written out again with nothing left to guess.

A build tool is handed what `written` makes of it: one instruction per line, no comments, no continuations, and every
image behind FROM replaced by one that we have verified. So the tool cannot read it differently than it was read here,
and what it could use to reach other images or the host's files is refused by name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason

MAX_BYTES = 256 * 1024
MAX_LINE = 32 * 1024
"""Of one instruction: build tools read lines into a buffer of 64 KiB and drop what follows a longer one."""
PARAM = "containerfile"
SCRATCH = "scratch"

_WORDS = frozenset(
    {
        *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER"),
        *("ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
    }
)
_FLAGS: Mapping[str, frozenset[str]] = {
    "ADD": frozenset({"--chown", "--chmod"}),
    "COPY": frozenset({"--from", "--chown", "--chmod"}),
    "HEALTHCHECK": frozenset({"--interval", "--timeout", "--start-period", "--retries"}),
}
_CONTINUES = re.compile(r"\\[ \t]*$")
_HEREDOC = re.compile(r"<<-?[\"']?[A-Za-z_]")
_ESCAPE = re.compile(r"#\s*escape\s*=\s*(\S+)", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_STAGE_NAME = re.compile(r"[a-z][a-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction on one line; `line` is where it begins in the file, from 1."""

    line: int
    word: str
    rest: str


@dataclass(frozen=True, slots=True)
class Stage:
    """What stands behind a FROM: an image's text, or the number of an earlier stage, or neither for `scratch`."""

    image: str | None = None
    earlier: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Containerfile:
    """A file that was understood whole."""

    instructions: tuple[Instruction, ...]
    stages: tuple[Stage, ...]

    @property
    def images(self) -> tuple[str, ...]:
        """Every image that it builds on, as it is written, once each."""
        return tuple(dict.fromkeys(stage.image for stage in self.stages if stage.image is not None))

    @property
    def base(self) -> str | None:
        """The image whose layers are the lower layers of the result; None when it begins from scratch."""
        stage = self.stages[-1]
        while stage.earlier is not None:
            stage = self.stages[stage.earlier]
        return stage.image

    def written(self, names: Mapping[str, str]) -> str:
        """The file for a build tool; `names` says how it knows each of `images`."""
        stages = iter(self.stages)
        lines = [
            self._from(next(stages), names) if it.word == "FROM" else f"{it.word} {it.rest}" for it in self.instructions
        ]
        return "\n".join(lines) + "\n"

    def _from(self, stage: Stage, names: Mapping[str, str]) -> str:
        known = SCRATCH
        if stage.earlier is not None:
            known = self.stages[stage.earlier].name or SCRATCH
        elif stage.image is not None:
            known = names[stage.image]
        return f"FROM {known}" + (f" AS {stage.name}" if stage.name else "")

    @property
    def steps(self) -> tuple[str, ...]:
        """Every instruction for people, as `RUN make`."""
        return tuple(f"{it.word} {it.rest}" for it in self.instructions)


def read_containerfile(data: bytes, arguments: Mapping[str, str]) -> Containerfile | Refusal:
    """Read it; `arguments` are the values of `ARG`s before the first FROM. Or say why, with the line."""
    if len(data) > MAX_BYTES:
        return _refusal(f"it has more than {MAX_BYTES} bytes", None, {"limit": "containerfile_bytes"})
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _refusal("it is no UTF-8", None)
    lines = text.replace("\r\n", "\n").split("\n")
    instructions = _instructions(lines)
    if isinstance(instructions, Refusal):
        return instructions
    stages = _stages(instructions, arguments)
    return stages if isinstance(stages, Refusal) else Containerfile(instructions, stages)


def _refusal(why: str, line: int | None, details: Mapping[str, object] | None = None) -> Refusal:
    where = "" if line is None else f"line {line}: "
    facts = {**(details or {}), **({} if line is None else {"line": line})}
    return Refusal(Reason.INVALID_BODY, f"the Containerfile, {where}{why}", PARAM, facts)


def _instructions(lines: list[str]) -> tuple[Instruction, ...] | Refusal:
    found: list[Instruction] = []
    pieces: list[str] = []
    begun = 0
    for number, line in enumerate(lines, 1):
        bare = line.strip(" \t")
        if not bare or bare.startswith("#"):
            escape = _ESCAPE.fullmatch(bare) if not found and not pieces else None
            if escape is not None and escape[1] != "\\":
                return _refusal("another escape character than \\ is not supported", number)
            continue
        begun = begun if pieces else number
        goes_on = _CONTINUES.search(line)
        pieces.append(line[: goes_on.start()] if goes_on else line)
        if not goes_on:
            found.append(_instruction("".join(pieces), begun))
            pieces = []
    if pieces:
        found.append(_instruction("".join(pieces), begun))
    faults = (fault for it in found if (fault := _fault(it)) is not None)
    return next(faults, None) or tuple(found)


def _instruction(text: str, line: int) -> Instruction:
    """Take the first word; there is none where only backslashes stood."""
    word, rest = [*text.strip().split(None, 1), "", ""][:2]
    return Instruction(line, word.upper(), rest)


def _fault(it: Instruction) -> Refusal | None:
    """What of an instruction cannot be had here."""
    why = next((why for holds, why in _FAULTS if holds(it)), None)
    if why is not None:
        return _refusal(why, it.line)
    for flag in _flags(it.rest):
        name = flag.partition("=")[0]
        if name not in _FLAGS.get(it.word, ()) or any(char in flag for char in "\"'\\"):
            return _refusal(f"{it.word} {flag[:40]} is not supported", it.line)
    return None


_FAULTS: tuple[tuple[Callable[[Instruction], object], str], ...] = (
    (lambda it: it.word not in _WORDS, "it begins with no instruction"),
    (lambda it: len(it.rest) > MAX_LINE, f"the instruction has more than {MAX_LINE} characters"),
    (lambda it: any(ord(char) < ord(" ") and char != "\t" for char in it.rest), "it holds a control character"),
    (lambda it: _CONTINUES.search(it.rest), "it ends with a backslash that nothing follows"),
    (lambda it: it.word == "ONBUILD", "ONBUILD is not supported: OCI images have no place for it"),
    (lambda it: it.word in ("RUN", "COPY", "ADD") and _HEREDOC.search(it.rest), "here-documents are not supported"),
)


def _flags(rest: str) -> list[str]:
    flags = []
    for word in rest.split():
        if not word.startswith("--"):
            break
        flags.append(word)
    return flags


def _stages(instructions: tuple[Instruction, ...], arguments: Mapping[str, str]) -> tuple[Stage, ...] | Refusal:
    values: dict[str, str] = {}
    stages: list[Stage] = []
    for it in instructions:
        if it.word == "FROM":
            stage = _stage(it, values, stages)
            if isinstance(stage, Refusal):
                return stage
            stages.append(stage)
        elif not stages and it.word != "ARG":
            return _refusal("only ARG may stand before the first FROM", it.line)
        elif not stages:
            name, given, default = it.rest.strip().partition("=")
            if name in arguments or given:
                values[name] = arguments.get(name, default.strip("\"'"))
        elif it.word == "COPY":
            for flag in _flags(it.rest):
                fault = _copies_from(it, flag.removeprefix("--from="), stages) if "--from" in flag else None
                if fault is not None:
                    return fault
    return tuple(stages) if stages else _refusal("it has no FROM", None)


def _stage(it: Instruction, values: Mapping[str, str], stages: list[Stage]) -> Stage | Refusal:
    words = [word for word in it.rest.split() if not word.startswith("--")]
    alone, named = 1, 3
    if len(words) not in (alone, named) or (len(words) == named and words[1].upper() != "AS"):
        return _refusal("it is FROM IMAGE, or FROM IMAGE AS NAME", it.line)
    name = words[2].lower() if len(words) == named else None
    if name is not None and not _STAGE_NAME.fullmatch(name):
        return _refusal("a stage's name begins with a letter; letters, digits, '.', '_' and '-' may follow", it.line)
    unknown = [found for found in _variables(words[0]) if found not in values]
    if unknown:
        return _refusal(f"nothing says what ${unknown[0]} is; give its ARG before FROM a value", it.line)
    image = _VARIABLE.sub(lambda match: values[match[1] or match[2]], words[0])
    if "$" in image:
        return _refusal("FROM takes $NAME and ${NAME} only", it.line)
    earlier = next((n for n, stage in enumerate(stages) if stage.name == image.lower()), None)
    if earlier is not None:
        return Stage(earlier=earlier, name=name)
    return Stage(name=name) if image == SCRATCH else Stage(image=image, name=name)


def _variables(text: str) -> list[str]:
    return [match[1] or match[2] for match in _VARIABLE.finditer(text)]


def _copies_from(it: Instruction, source: str, stages: list[Stage]) -> Refusal | None:
    """Files may come from an earlier stage and from nowhere else."""
    names = {stage.name for stage in stages[:-1]} | {str(number) for number in range(len(stages) - 1)}
    if source.lower() in names:
        return None
    return _refusal("COPY --from takes the name of an earlier stage; begin a stage FROM that image", it.line)
