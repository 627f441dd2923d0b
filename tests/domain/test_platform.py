"""Equal platforms are equal values, however they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.platform import Platform


@pytest.mark.parametrize(
    "text, written",
    [
        ("linux/amd64", "linux/amd64"),
        ("linux/x86_64", "linux/amd64"),
        ("linux/x86-64", "linux/amd64"),
        ("linux/amd64/v1", "linux/amd64"),
        ("linux/amd64/v3", "linux/amd64/v3"),
        ("linux/aarch64", "linux/arm64"),
        ("linux/arm64/v8", "linux/arm64"),
        ("linux/arm64/v9", "linux/arm64/v9"),
        ("linux/arm/v7", "linux/arm/v7"),
        ("linux/i686", "linux/386"),
        ("windows/amd64", "windows/amd64"),
        ("linux/riscv64", "linux/riscv64"),
    ],
)
def test_aliases_and_implied_variants(text: str, written: str) -> None:
    platform = Platform.parse(text)
    assert platform is not None
    assert str(platform) == written
    assert Platform.parse(written) == platform


@pytest.mark.parametrize(
    "text",
    [
        *("", "linux", "linux/", "/amd64", "linux//v8", "linux/amd64/", "linux/amd64/v1/x", "Linux/amd64"),
        *("linux/amd64\n", "linux/am d64", "linux/../x", "linux/" + "a" * 33, "-/amd64", "linux/é"),
    ],
)
def test_what_is_no_platform(text: str) -> None:
    assert Platform.parse(text) is None


@given(st.text(alphabet="linuxamdrv8/6_4-.", max_size=24))
def test_what_is_read_is_written_and_read_the_same(text: str) -> None:
    platform = Platform.parse(text)
    assert platform is None or Platform.parse(str(platform)) == platform
