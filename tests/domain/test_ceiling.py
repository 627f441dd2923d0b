"""What stands at the levels of a path: whose word it is, and which images an allow-list admits."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.binding import MODES, Binding, Mode, Written
from sandbay.domain.ceiling import EVERYTHING, NOTHING, AllowList
from sandbay.domain.ids import ProjectId
from sandbay.domain.path import DEPLOYMENT, Path, Subject
from sandbay.domain.trail import Level

PROJECT = ProjectId("prj_" + "0" * 20)
IMAGE = ("web", "img_" + "0" * 20)
LABELS = {"team": "growth", "kind": "browser"}


@pytest.mark.parametrize(
    "listed, admitted",
    [
        (EVERYTHING, True),
        (NOTHING, False),
        (AllowList(names=frozenset({"web"})), True),
        (AllowList(names=frozenset({IMAGE[1], "other"})), True),
        (AllowList(names=frozenset({"webs", "we", ""})), False),
        (AllowList(selectors=({"team": "growth"},)), True),
        (AllowList(selectors=({"team": "growth", "kind": "browser"},)), True),
        (AllowList(selectors=({"team": "growth", "kind": "shell"},)), False),
        (AllowList(selectors=({"team": "sales"}, {"kind": "browser"})), True),
        (AllowList(selectors=({"team": "growth", "more": ""},)), False),
        (AllowList(selectors=({},)), False),
        (AllowList(names=frozenset({"other"}), selectors=({"kind": "browser"},)), True),
    ],
)
def test_what_an_allow_list_admits(listed: AllowList, *, admitted: bool) -> None:
    assert listed.admits(IMAGE, LABELS) is admitted


LISTS = st.builds(
    AllowList,
    st.booleans(),
    st.frozensets(st.sampled_from(["web", "tool", IMAGE[1]])),
    st.lists(st.dictionaries(st.sampled_from(["team", "kind"]), st.sampled_from(["growth", "browser"]))).map(tuple),
)


@given(LISTS, LISTS)
def test_what_is_added_to_a_list_takes_nothing_away(first: AllowList, more: AllowList) -> None:
    both = AllowList(first.everything or more.everything, first.names | more.names, (*first.selectors, *more.selectors))
    assert both.admits(IMAGE, LABELS) is (first.admits(IMAGE, LABELS) or more.admits(IMAGE, LABELS))


def test_a_path_names_all_that_can_speak_on_it_broad_to_narrow() -> None:
    path = Path(PROJECT, "growth", ("org:a", "room:r"), "coder")
    assert path.subjects == (
        DEPLOYMENT,
        Subject(Level.PROJECT, PROJECT),
        Subject(Level.SCOPE, "org:a"),
        Subject(Level.SCOPE, "room:r"),
        Subject(Level.AGENT, "coder", PROJECT),
    )
    assert [path.told(it) for it in path.subjects] == [None, "growth", "org:a", "room:r", "coder"]
    assert Path().subjects == (DEPLOYMENT,)
    assert Path(scopes=("org:a",)).subjects == (DEPLOYMENT, Subject.of_scope("org:a"))


def test_agents_of_two_projects_are_two_subjects() -> None:
    theirs = ProjectId("prj_" + "1" * 20)
    assert Subject.of_agent(PROJECT, "coder") != Subject.of_agent(theirs, "coder")


def test_where_a_binding_can_stand() -> None:
    assert MODES[Level.DEPLOYMENT] == {Mode.ENFORCE}
    assert {level for level, modes in MODES.items() if modes == set(Mode)} == {
        Level.PROJECT,
        Level.SCOPE,
        Level.AGENT,
    }
    first = Binding(DEPLOYMENT, Mode.ENFORCE, "web", Written("a", datetime(2026, 1, 1, tzinfo=UTC)))
    assert first.written.revision == 1
