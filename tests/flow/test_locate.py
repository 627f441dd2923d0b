"""Where a Session stands: nobody sheds a ceiling by leaving a scope out, or borrows a grant by naming a stranger's."""

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.errors import Refusal
from sandbay.domain.ids import ProjectId
from sandbay.domain.path import Path
from sandbay.domain.project import Project
from sandbay.domain.scope import UNCONFINED, Confinement, Scope, lineage_of
from sandbay.flow.locate import Whereabouts, locate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OURS, THEIRS = ProjectId("prj_" + "0" * 20), ProjectId("prj_" + "1" * 20)
FREE, STRICT = Project(OURS, "growth", NOW), Project(OURS, "growth", NOW, scope_required=True)


def scope(name: str, parent: str | None = None, project: ProjectId | None = None) -> Scope:
    return Scope(name, NOW, parent, project)


ROWS = {
    it.name: it
    for it in (
        scope("org:a"),
        scope("team:t", "org:a"),
        scope("room:r", "team:t", OURS),
        scope("team:sister", "org:a"),
        scope("team:theirs", "org:a", THEIRS),
        scope("room:theirs", "team:theirs", THEIRS),
    )
}
PATHS = {
    "org:a": ("org:a",),
    "team:t": ("org:a", "team:t"),
    "room:r": ("org:a", "team:t", "room:r"),
    "team:sister": ("org:a", "team:sister"),
}
NAMES = [None, *ROWS, "room:none"]


def located(asked: Whereabouts, key: Confinement = UNCONFINED, project: Project = FREE) -> Path | Refusal:
    name = asked.within(key)
    return locate(project, asked, () if name is None else lineage_of(name, ROWS), key)


@pytest.mark.parametrize("name, held, project", list(product(NAMES, NAMES, [FREE, STRICT])), ids=str)
def test_every_scope_under_every_key(name: str | None, held: str | None, project: Project) -> None:
    answer = located(Whereabouts(name), Confinement(held), project)
    meant = name or held
    if meant is None:
        expected: object = ("scope_required", "scope") if project.scope_required else ()
    elif meant not in PATHS:
        expected = ("scope_unknown", "scope" if name else None)
    elif held is not None and held not in PATHS[meant]:
        expected = ("forbidden", "scope")
    else:
        expected = PATHS[meant]
    if isinstance(answer, Refusal):
        assert (answer.reason, answer.param) == expected
    else:
        assert answer.scopes == expected
        assert held is None or held in answer.scopes


def test_a_strangers_scope_is_answered_as_one_that_does_not_exist() -> None:
    theirs, none = located(Whereabouts("room:theirs")), located(Whereabouts("room:none"))
    assert isinstance(theirs, Refusal)
    assert isinstance(none, Refusal)
    assert theirs.message.replace("room:theirs", "room:none") == none.message
    assert {**theirs.details, "scope": "room:none"} == none.details
    assert (theirs.reason, theirs.param) == (none.reason, none.param)


@pytest.mark.parametrize("name", [None, "coder", "reviewer", "stranger"])
@pytest.mark.parametrize("held", [None, (), ("coder",), ("coder", "reviewer")], ids=str)
def test_every_agent_under_every_key(name: str | None, held: tuple[str, ...] | None) -> None:
    answer = located(Whereabouts(agent=name), Confinement(agents=None if held is None else frozenset(held)))
    if held is None or name in held:
        assert isinstance(answer, Path)
        assert answer.agent == name
    elif name is None and len(held) == 1:
        assert isinstance(answer, Path)
        assert answer.agent == held[0]  # what a key is held to cannot be left out
    else:
        assert isinstance(answer, Refusal)
        assert (answer.reason, answer.param) == ("forbidden", "agent")
        assert answer.details == {"agents": sorted(held)}


def test_the_path_has_its_project() -> None:
    answer = located(Whereabouts("team:t", "coder"))
    assert answer == Path(OURS, "growth", ("org:a", "team:t"), "coder")


@given(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from([None, "coder"]))
def test_a_path_under_a_key_is_one_that_is_there_without_it(
    name: str | None, held: str | None, agent: str | None
) -> None:
    """A key takes away and adds nothing: what it reaches, an unconfined key reaches by naming it."""
    answer = located(Whereabouts(name, agent), Confinement(held))
    if isinstance(answer, Path):
        assert answer == located(Whereabouts(answer.scopes[-1] if answer.scopes else None, agent))
