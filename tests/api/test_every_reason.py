"""Every reason is produced by some test through the public API, or it has no place in the enum.

A test says so with `@pytest.mark.produces(Reason.X)`, and tests/conftest.py holds it to that. Here the marks of
all test files are counted from their source, so that running one file alone counts the same.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.domain.reasons import Reason

TESTS = Path(__file__).resolve().parent.parent


def marks(source: str) -> Iterator[str]:
    """Names of the members in every `….produces(Reason.X, …)`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "produces":
            for argument in node.args:
                assert isinstance(argument, ast.Attribute), "name the members: produces(Reason.X)"
                yield argument.attr


PRODUCED = {name for path in TESTS.rglob("test_*.py") for name in marks(path.read_text())}


def test_marks_are_found_wherever_they_stand() -> None:
    source = """
pytestmark = pytest.mark.produces(Reason.A)

@pytest.mark.produces(Reason.B, Reason.C)
def test_x(): ...

CASES = [pytest.param(1, marks=pytest.mark.produces(Reason.D))]
"""
    assert sorted(marks(source)) == ["A", "B", "C", "D"]


def test_marks_name_members() -> None:
    assert set(Reason.__members__) >= PRODUCED


@pytest.mark.parametrize("name", list(Reason.__members__))
def test_a_reason_is_produced_through_the_api(name: str) -> None:
    assert name in PRODUCED, f"no test is marked @pytest.mark.produces(Reason.{name})"
