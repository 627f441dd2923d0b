"""What a requirement means: its text, which versions will do, and what of it tools do not meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.requirement import NoRequirement, Required, Requirement, Unmet, parse_requirement, unmet

READ = {
    "git": ("git", ""),
    "node>=20": ("node", ">=20"),
    "codex>=1,<3": ("codex", ">=1,<3"),
    "  node >= 20 , < 22 ": ("node", ">=20,<22"),
    "g++==12.*": ("g++", "==12.*"),
    "python3.11~=3.11.2": ("python3.11", "~=3.11.2"),
    "apt-get!=2.6": ("apt-get", "!=2.6"),
    "7z": ("7z", ""),
    "X" * 64: ("X" * 64, ""),
}


@pytest.mark.parametrize("text", READ)
def test_what_is_read(text: str) -> None:
    assert parse_requirement(text) == Requirement(*READ[text])


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-x", ">=20", "node>", "node=20", "node>=", "node 20", "node>=x", "node>=20 or", "node~=1"),
        *("node[x]>=1", "node @ https://example.invalid", "node>=20; python_version < '3'", "node->=1", "no/de", "ä"),
        *("X" * 65, "node>=" + "9" * 300, "node\n>=20\x00"),
    ],
)
def test_what_is_none(text: str) -> None:
    answer = parse_requirement(text)
    assert isinstance(answer, NoRequirement)
    assert answer.why


@given(st.text(max_size=40))
def test_any_text_gets_an_answer_that_reads_back(text: str) -> None:
    answer = parse_requirement(text)
    if isinstance(answer, Requirement):
        assert parse_requirement(str(answer)) == answer


MEETS = [
    ("node>=20", ["20", "20.0.0", "20.1rc1", "22.3.0", "100"], ["19.99", "20.0.0rc1", "2", "", "latest"]),
    ("codex>=1,<3", ["1", "2.9.9"], ["0.9", "3", "3.0.1"]),
    ("node==20.*", ["20", "20.9"], ["21", "2.0"]),
    ("git", ["0", "2.39.5", "2.39.5rc1"], [""]),
    ("tmux!=3.3", ["3.3.1", "3.4"], ["3.3", "3.3.0"]),
]


@pytest.mark.parametrize("text, will_do, will_not", MEETS)
def test_which_versions_will_do(text: str, will_do: list[str], will_not: list[str]) -> None:
    requirement = parse_requirement(text)
    assert isinstance(requirement, Requirement)
    assert [v for v in (*will_do, *will_not) if requirement.met_by(v)] == will_do


def test_everything_that_is_unmet_is_told_in_order() -> None:
    node, git, jq = (Required(Requirement(tool, says)) for tool, says in (("node", ">=20"), ("git", ""), ("jq", "")))
    assert unmet([node, git, jq], {"node": "18.1", "git": "2"}) == (Unmet(node, "18.1"), Unmet(jq, None))
    assert unmet(iter([node, git]), {}) == (Unmet(node, "unknown"), Unmet(git, "unknown"))
    assert unmet([node], {"node": "20"}) == ()
    assert unmet([], {}) == ()
    assert (node.requirement.wanted, git.requirement.wanted) == (">=20", "any")
