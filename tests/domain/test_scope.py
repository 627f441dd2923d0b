"""Scopes as rows: their names, the path that follows from them, what may stand below what, what a key is held to."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.ids import ProjectId
from sandbay.domain.reference import Malformed
from sandbay.domain.scope import (
    DEEPEST,
    UNCONFINED,
    Confinement,
    Scope,
    ScopeName,
    is_agent_name,
    lineage_of,
    parent_fault,
    parse_scope,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OURS, THEIRS = ProjectId("prj_" + "0" * 20), ProjectId("prj_" + "1" * 20)


def scope(name: str, parent: str | None = None, project: ProjectId | None = None) -> Scope:
    return Scope(name, NOW, parent, project)


def rows(*scopes: Scope) -> dict[str, Scope]:
    return {it.name: it for it in scopes}


READ = {
    "org:acme": ("org", "acme"),
    "room:deal-desk": ("room", "deal-desk"),
    "personal:u17": ("personal", "u17"),
    "personal:jane@acme.example": ("personal", "jane@acme.example"),
    "a:B": ("a", "B"),
    "x" * 32 + ":" + "y" * 127: ("x" * 32, "y" * 127),
}


@pytest.mark.parametrize("text", READ)
def test_what_is_a_scope(text: str) -> None:
    name = parse_scope(text)
    assert name == ScopeName(*READ[text])
    assert str(name) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "org", "org:", ":acme", "Org:acme", "-org:acme", "1org:acme", "org:-acme", "org:.", "org:../x"),
        *("org:a/b", "org/a:b", "org:a:b", "https://acme.example", " org:acme", "org:acme ", "org:acme\n", "org:ä"),
        *("x" * 33 + ":y", "x:" + "y" * 128, "org:a b", "--org:a", "org:a\x00"),
    ],
)
def test_what_is_none(text: str) -> None:
    answer = parse_scope(text)
    assert isinstance(answer, Malformed)
    assert answer.why


@pytest.mark.parametrize("text", ["coder", "Coder-2.1_x", "a", "7", "a" * 63])
def test_names_of_agents(text: str) -> None:
    assert is_agent_name(text)


@pytest.mark.parametrize("text", ["", "-a", ".", "a/b", "a b", "a:b", "a" * 64, "a\n", "ä", "@a"])
def test_what_names_no_agent(text: str) -> None:
    assert not is_agent_name(text)


ORG, TEAM, ROOM = scope("org:a"), scope("team:t", "org:a"), scope("room:r", "team:t")


def test_a_lineage_goes_from_a_scope_to_the_broadest() -> None:
    known = rows(ROOM, ORG, TEAM, scope("org:other"), scope("team:sister", "org:a"))
    assert lineage_of("room:r", known) == (ROOM, TEAM, ORG)
    assert lineage_of("org:a", known) == (ORG,)
    assert lineage_of("room:none", known) == ()


@given(st.dictionaries(st.sampled_from("abcde"), st.none() | st.sampled_from("abcdef")), st.sampled_from("abcdef"))
def test_a_lineage_ends_on_any_rows_and_names_each_once(parents: dict[str, str | None], start: str) -> None:
    found = [it.name for it in lineage_of(start, {name: scope(name, parent) for name, parent in parents.items()})]
    assert len(found) == len(set(found))
    assert found[:1] == ([start] if start in parents else [])
    assert all(parents[child] == parent for child, parent in pairwise(found))
    if found and (last := parents[found[-1]]) is not None:
        assert last in found or last not in parents  # only a cycle or a missing row ends it early


def test_what_may_stand_below_what() -> None:
    above = (TEAM, ORG)
    assert parent_fault(scope("room:new", "team:t"), above) is None
    assert parent_fault(scope("org:new"), ()) is None
    assert parent_fault(scope("room:new", "team:t", OURS), above) is None  # a project's own, below what is for all
    assert "there is no scope team:x" in str(parent_fault(scope("room:new", "team:x"), ()))


@pytest.mark.parametrize("name", ["team:t", "org:a"])
def test_no_scope_is_put_below_itself(name: str) -> None:
    fault = parent_fault(scope(name, "team:t"), (TEAM, ORG))
    assert fault is not None
    assert "below itself" in fault


def test_below_what_a_project_owns_all_is_its_own() -> None:
    above = (replace(TEAM, project=OURS), ORG)
    assert parent_fault(scope("room:new", "team:t", OURS), above) is None
    for project in (None, THEIRS):
        assert "belongs to a project" in str(parent_fault(scope("room:new", "team:t", project), above))


def test_a_path_has_an_end() -> None:
    chain = tuple(scope(f"x:{n}", None if n == 1 else f"x:{n - 1}") for n in range(DEEPEST, 0, -1))
    assert parent_fault(scope("x:new", chain[1].name), chain[1:]) is None
    assert f"at most {DEEPEST}" in str(parent_fault(scope("x:new", chain[0].name), chain))


def test_a_key_is_held_to_a_scope_and_all_below_it() -> None:
    held = Confinement("team:t")
    assert held.holds((ROOM, TEAM, ORG))
    assert held.holds((TEAM, ORG))
    assert not held.holds((ORG,))
    assert not held.holds((scope("team:sister", "org:a"), ORG))
    assert not held.holds(())
    assert UNCONFINED.holds(())
