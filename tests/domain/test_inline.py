"""Files that come in a request stay where they are put."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.inline import (
    FILES,
    INLINE_BYTES,
    Encoding,
    InlineFile,
    Unfit,
    bytes_fault,
    folder_fault,
    inline_file,
    inner_path,
)

FINE = {
    "a": "a",
    "a/b.txt": "a/b.txt",
    "./a/./b": "a/b",
    "/workspace/a": "a",
    "...": "...",
    "a b/ü": "a b/ü",
    "-rf": "-rf",
    "workspace/a": "workspace/a",
}
NOT = ["", ".", "..", "/", "a/", "/a", "a//b", "../a", "a/../b", "a/..", "/workspace", "/workspace/", "/workspace//a"]
NOT += ["/workspace/../a", "/workspacea", "a\0", "a\n", "\x1b[0m", "a\u202e", "x" * 256, "y/" * 600 + "y", "\ud800"]


@pytest.mark.parametrize("text,path", FINE.items())
def test_a_path_is_kept_in_one_form(text: str, path: str) -> None:
    assert inner_path(text) == path


@pytest.mark.parametrize("text", NOT)
def test_no_path_leads_elsewhere(text: str) -> None:
    assert isinstance(inner_path(text), Unfit)


@given(st.text(alphabet="ab./~-\\ workspce", max_size=20))
def test_what_is_kept_has_only_names(text: str) -> None:
    path = inner_path(text)
    if isinstance(path, str):
        assert not path.startswith("/")
        assert not {"", ".", ".."} & set(path.split("/"))
        assert inner_path(path) in (path, path.removeprefix("workspace/")) or path.startswith("/workspace")


@given(st.binary(max_size=50))
def test_bytes_come_out_as_they_went_in(data: bytes) -> None:
    made = inline_file("x", base64.b64encode(data).decode(), Encoding.BASE64, executable=False)
    assert isinstance(made, InlineFile)
    assert (made.data, made.size) == (data, len(data))


@pytest.mark.parametrize("content", ["?", "AA", "AA=A", "A A=", "ü"])
def test_what_is_no_base64(content: str) -> None:
    made = inline_file("x", content, Encoding.BASE64, executable=False)
    assert isinstance(made, Unfit)
    assert made.at == ("content",)


def test_an_outline_has_no_bytes() -> None:
    outline = InlineFile("x", "abc", 3).outline
    assert (outline.path, outline.size, outline.content) == ("x", 3, None)
    with pytest.raises(LookupError):
        _ = outline.data


def files(*paths: str, size: int = 0) -> list[InlineFile]:
    return [InlineFile(path, "", size) for path in paths]


def test_a_folder_has_one_thing_at_each_path() -> None:
    assert folder_fault(files("a/b", "a/c", "ab", "a.b")) is None
    assert folder_fault(files("a", "b", "a")) == Unfit("two files are called a", (2, "path"))
    for order in (("a", "a/b/c"), ("a/b/c", "a")):
        fault = folder_fault(files(*order))
        assert fault is not None
        assert fault.at == (order.index("a/b/c"), "path")


def test_limits_are_told() -> None:
    assert folder_fault(files(*map(str, range(FILES)))) is None
    assert str(FILES) in str(folder_fault(files(*map(str, range(FILES + 1)))))
    assert bytes_fault(files("a", size=INLINE_BYTES)) is None
    assert str(INLINE_BYTES) in str(bytes_fault(files("a", "b", size=INLINE_BYTES // 2 + 1)))
