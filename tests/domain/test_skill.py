"""What a skill says of itself is read with distrust; what is no skill says why."""

import pytest

from sandbay.domain.inline import Encoding, InlineFile, Unfit
from sandbay.domain.skill import Plugin, Skill, read_plugin, read_skill


def skill(front: str, *more: InlineFile, body: str = "Stir.\n") -> Skill | Unfit:
    text = f"---\n{front}\n---\n{body}"
    return read_skill([InlineFile("SKILL.md", text, len(text.encode())), *more])


def test_a_skill_is_its_folder_and_what_it_says() -> None:
    more = InlineFile("scripts/run.sh", "true", 4, executable=True)
    made = skill(
        'name: cook-1\ndescription: >-\n  Cooks\n  well.\nrequires: [node>=20, "git"]\nlicense: {a: [b]}', more
    )
    assert isinstance(made, Skill)
    assert (made.name, made.description, made.requires) == ("cook-1", "Cooks well.", ("node>=20", "git"))
    assert made.files[1] == more


@pytest.mark.parametrize(
    "front", ["name: a\ndescription: b", "name: a\ndescription: b\nrequires:", "name: a\ndescription: b\nrequires: []"]
)
def test_requires_may_be_silent(front: str) -> None:
    made = skill(front)
    assert isinstance(made, Skill)
    assert made.requires == ()


@pytest.mark.parametrize(
    "text",
    [
        "---\r\nname: a\r\ndescription: b\r\n---\r\n",
        "\ufeff---\nname: a\ndescription: b\n---",
        "--- \nname: 1\ndescription: true\n---\n",
    ],
)
def test_front_matter_as_editors_write_it(text: str) -> None:
    assert isinstance(read_skill([InlineFile("SKILL.md", text, len(text.encode()))]), Skill)


WRONG = {
    "no name": "description: b",
    "no description": "name: a",
    "a name that is a path": "name: ../a\ndescription: b",
    "a name that is a list": "name: [a]\ndescription: b",
    "upper case": "name: A\ndescription: b",
    "a long description": f"name: a\ndescription: {'b' * 1025}",
    "a NUL": 'name: a\ndescription: "b\\0"',
    "requires that is a text": "name: a\ndescription: b\nrequires: git",
    "requires of lists": "name: a\ndescription: b\nrequires: [[git]]",
    "too many": f"name: a\ndescription: b\nrequires: [{', '.join(['git'] * 51)}]",
    "a list": "- name: a",
    "no YAML": "name: [a",
    "an alias": "name: a\ndescription: b\nx: &x [1]\ny: *x",
    "a tag": "name: !!python/object/apply:os.getcwd []\ndescription: b",
    "very deep": "name: a\ndescription: b\nx: " + "[" * 1000,
    "very long": "name: a\ndescription: b\nx: " + "y" * 20_000,
}


@pytest.mark.parametrize("front", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_skill(front: str) -> None:
    made = skill(front)
    assert isinstance(made, Unfit)
    assert made.at == ("files",)


@pytest.mark.parametrize(
    "files",
    [
        [],
        [InlineFile("skill.md", "x", 1)],
        [InlineFile("SKILL.md", "Stir.", 5)],
        [InlineFile("SKILL.md", "/w==", 1, Encoding.BASE64)],
    ],
)
def test_what_has_no_front_matter(files: list[InlineFile]) -> None:
    assert isinstance(read_skill(files), Unfit)


def test_files_of_a_skill_lie_in_one_folder() -> None:
    made = skill("name: a\ndescription: b", InlineFile("SKILL.md", "", 0))
    assert isinstance(made, Unfit)
    assert made.at == ("files", 1, "path")


def test_a_plugin_has_a_manifest() -> None:
    manifest = InlineFile("plugin.json", '{"name": "plug", "version": 1}', 30)
    assert read_plugin([manifest]) == Plugin("plug", (manifest,))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"name": 1}', '{"name": "a/b"}', "[" * 100_000, '{"name": "a"}' + " " * 300_000],
)
def test_what_is_no_plugin(text: str) -> None:
    assert isinstance(read_plugin([InlineFile("plugin.json", text, len(text))]), Unfit)
