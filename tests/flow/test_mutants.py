"""The faults of `tests.flow.mutants` can still be planted. Whether each is caught, `./dev mutants` tells."""

import ast
import pathlib
from collections import Counter
from functools import cache

import pytest

from tests.flow.mutants import (
    FREEZE,
    MUTANTS,
    PLACE,
    PREPARE,
    PROVE,
    READINESS,
    RELEASE,
    REQUIREMENT,
    RUN,
    WANT,
    Mutant,
)
from tests.flow.mutants_of_lives import OF_LIVES
from tests.flow.mutants_of_selection import OF_SELECTION
from tests.flow.mutants_of_the_node import OF_THE_NODE

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src" / "sandbay"


@cache
def _source(file: str) -> tuple[str, str]:
    text = (SOURCES / file).read_text()
    return text, ast.dump(ast.parse(text))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.file}: {m.what}")
def test_it_changes_one_place_into_other_python(mutant: Mutant) -> None:
    source, meaning = _source(mutant.file)
    assert source.count(mutant.old) == 1
    assert ast.dump(ast.parse(source.replace(mutant.old, mutant.new))) != meaning


def test_every_decision_has_faults_and_no_two_are_the_same() -> None:
    decisions, nouns = {FREEZE, PROVE, PLACE, WANT, PREPARE, RUN}, {READINESS, RELEASE, REQUIREMENT}
    assert set(Counter(m.file for m in MUTANTS)) == decisions | nouns | set(OF_SELECTION) | set(OF_THE_NODE) | set(
        OF_LIVES
    )
    assert len({(m.file, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)
    assert len({(m.file, m.what) for m in MUTANTS}) == len(MUTANTS)
