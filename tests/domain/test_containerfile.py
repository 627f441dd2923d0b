"""What a Containerfile means, and that the build tool is given exactly that and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.containerfile import MAX_BYTES, MAX_LINE, Containerfile, read_containerfile
from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason


def read(text: str, **arguments: str) -> Containerfile:
    found = read_containerfile(text.encode(), arguments)
    assert isinstance(found, Containerfile), found
    return found


def refusal(text: str | bytes, **arguments: str) -> Refusal:
    found = read_containerfile(text if isinstance(text, bytes) else text.encode(), arguments)
    assert isinstance(found, Refusal), found
    assert (found.reason, found.param) == (Reason.INVALID_BODY, "containerfile")
    return found


WRITTEN = [
    ("FROM scratch", "FROM scratch\n"),
    ("from scratch as X\nfrom x\n", "FROM scratch AS x\nFROM x\n"),
    ("FROM image:base", "FROM oci:b\n"),
    ("# a comment\n\nFROM image:base\nRUN a \\\n  # in between\n\n  && b\n", "FROM oci:b\nRUN a   && b\n"),
    ("ARG V=base\nFROM image:$V\nRUN x", "ARG V=base\nFROM oci:b\nRUN x\n"),
    ('ARG V="base"\nFROM image:${V}', 'ARG V="base"\nFROM oci:b\n'),
    ("\ufeffFROM image:base\r\nRUN x\r\n", "FROM oci:b\nRUN x\n"),
    ("FROM image:base\nCOPY --chown=1:1 --chmod=0755 a b", "FROM oci:b\nCOPY --chown=1:1 --chmod=0755 a b\n"),
    (
        "FROM image:base AS low\nFROM scratch\nCOPY --from=low /a /b",
        "FROM oci:b AS low\nFROM scratch\nCOPY --from=low /a /b\n",
    ),
    ("FROM image:base\nFROM scratch\nCOPY --from=0 /a /b", "FROM oci:b\nFROM scratch\nCOPY --from=0 /a /b\n"),
    ("# escape=\\\nFROM scratch", "FROM scratch\n"),
    ("FROM scratch\nRUN echo $((1<<2)) --mount=x", "FROM scratch\nRUN echo $((1<<2)) --mount=x\n"),
]


@pytest.mark.parametrize("text, written", WRITTEN)
def test_one_instruction_a_line_and_verified_images_only(text: str, written: str) -> None:
    assert read(text).written({"image:base": "oci:b"}) == written


def test_arguments_from_outside_go_before_defaults() -> None:
    assert read("ARG BASE=image:other\nFROM ${BASE}", BASE="image:base").images == ("image:base",)


BASES = [
    ("FROM image:a AS x\nFROM image:b", "image:b", ("image:a", "image:b")),
    ("FROM image:a AS x\nFROM image:b\nFROM x", "image:a", ("image:a", "image:b")),
    ("FROM image:a AS x\nFROM x AS y\nFROM y", "image:a", ("image:a",)),
    ("FROM image:a\nFROM scratch", None, ("image:a",)),
]


@pytest.mark.parametrize("text, base, images", BASES)
def test_what_the_result_stands_on(text: str, base: str | None, images: tuple[str, ...]) -> None:
    found = read(text)
    assert (found.base, found.images) == (base, images)


REFUSED = [
    ("", None),
    ("# nothing", None),
    ("RUN x\nFROM scratch", 1),
    ("FROM", 1),
    ("FROM a b", 1),
    ("FROM a IN b", 1),
    ("FROM a AS ../x", 1),
    ("FROM --platform=linux/arm64 a", 1),
    ("FROM ${UNKNOWN}", 1),
    ("ARG A\nFROM $A", 2),
    ("ARG A=1\nFROM ${A:-2}", 2),
    ("FROM scratch\nCOPY --from=image:other /a /b", 2),
    ("FROM scratch\nCOPY --from=dir:/etc /a /b", 2),
    ("FROM scratch\nCOPY --from=1 /a /b", 2),
    ("FROM scratch AS x\nCOPY --from=x /a /b", 2),
    ("FROM scratch AS x\nFROM scratch\nCOPY --from=$X /a /b", 3),
    ('FROM scratch\nCOPY --chown="1 --from=x" /a /b', 2),
    ("FROM scratch\nCOPY --fr\\om=x /a /b", 2),
    ("FROM scratch\nRUN --mount=type=bind,source=/etc,target=/x cat /x", 2),
    ("FROM scratch\nRUN --network=host x", 2),
    ("FROM scratch\nRUN --security=insecure x", 2),
    ("FROM scratch\nADD --keep-git-dir x y", 2),
    ("FROM scratch\nRUN <<EOF\nx\nEOF", 2),
    ("FROM scratch\nCOPY <<EOF /x\nx\nEOF", 2),
    ("FROM scratch\nONBUILD RUN x", 2),
    ("FROM scratch\nINCLUDE x", 2),
    ("FROM scratch\nRUN x \\\\", 2),
    ("# escape=`\nFROM scratch", 1),
    ("FROM scratch\nRUN a\x0bFROM dir:/", 2),
    ("FROM scratch\nRUN a\rFROM dir:/", 2),
    ("FROM scratch\nRUN " + "x" * MAX_LINE + "x", 2),
    ("FROM scratch\n\\\n", 2),
]


@pytest.mark.parametrize("text, line", REFUSED)
def test_what_cannot_be_had_is_refused_with_its_line(text: str, line: int | None) -> None:
    assert refusal(text).details.get("line") == line


def test_what_is_no_text_or_too_much() -> None:
    refusal(b"FROM \xff")
    refusal(b"#" * (MAX_BYTES + 1))


LINES = st.lists(
    st.text(st.sampled_from("FROM RUN COPY --from=x \\\n#\t$AS<<\"'`dir:/"), max_size=30), min_size=1, max_size=8
)


@given(LINES)
def test_whatever_it_says_no_other_image_is_in_what_is_written(lines: list[str]) -> None:
    found = read_containerfile(("FROM image:base\n" + "\n".join(lines)).encode(), {})
    if isinstance(found, Refusal):
        return
    names = {image: f"oci:base{number}" for number, image in enumerate(found.images)}
    stages = {stage.name for stage in found.stages} | set(names.values()) | {"scratch"}
    for line in found.written(names).split("\n")[:-1]:
        assert not line.endswith("\\")
        word, *rest = line.split()
        assert word.isupper() or word.isascii()
        if word == "FROM":
            assert rest[0] in stages
    again = read_containerfile(found.written(names).encode(), {})
    assert isinstance(again, Containerfile)
    assert [it.word for it in again.instructions] == [it.word for it in found.instructions]
