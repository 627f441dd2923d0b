"""Every case of trouble that others reported is shown by tests that exist, or says what it waits for."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.cases import LATER, SHOWN

TESTS = Path(__file__).parents[1]
# By kind: names 01-10, manifests 11-28, layers 29-46, transfer 47-56, registries 58-64, running 92-107, operations
# 109-118, content 120-126. Numbers that are missing were never given.
NUMBERS = {
    *(1, 3, 4, 5, 6, 8, 10, 11, 12, 13, 16, 17, 18, 19, 21, 22, 23, 25, 26, 27, 28, 29, 30, 32, 33, 34, 35, 36, 38, 39),
    *(40, 41, 43, 44, 45, 46, 47, 49, 51, 53, 54, 56, 58, 59, 62, 63, 64, 70, 86, 92, 93, 94, 96, 97, 98, 99),
    *(101, 102, 104, 105, 106, 107, 109, 111, 112, 114, 116, 117, 118, 120, 121, 122, 123, 124, 126),
}


@cache
def functions(file: str) -> frozenset[str]:
    """Names of all functions of a file, methods included."""
    nodes = ast.walk(ast.parse((TESTS / file).read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("case", SHOWN)
def test_who_shows_a_case_exists(case: str) -> None:
    assert SHOWN[case]
    for named in SHOWN[case]:
        file, _, name = named.partition("::")
        assert name.startswith("test_")
        assert name in functions(file), f"{named} is gone: who shows {case} now?"


def test_no_case_is_forgotten() -> None:
    assert set(SHOWN) | set(LATER) == {f"R{number:02}" for number in NUMBERS}
    assert set(SHOWN) & set(LATER) == set()
    assert all(LATER.values())
