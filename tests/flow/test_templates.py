"""Templates in the decisions: the level between request and project, what is frozen of them, what may be written."""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from sandbay.domain.canonical import rebuild, sha256
from sandbay.domain.ceiling import NOTHING_STANDS
from sandbay.domain.declaration import Network
from sandbay.domain.ids import ProjectId, TemplateId
from sandbay.domain.inline import InlineFile
from sandbay.domain.package import Packages
from sandbay.domain.path import Path
from sandbay.domain.skill import Plugin, Skill
from sandbay.domain.template import (
    FrozenTemplate,
    Preparation,
    SetupCommand,
    Template,
    TemplateMark,
    preparation_fault,
)
from sandbay.domain.trail import SUPPORT_UNCHECKED, Outcome, Policy
from sandbay.flow.freeze import freeze_template
from sandbay.flow.resolve import Rejected, Selected, resolve
from tests.flow.oracle import Word, World, judge
from tests.flow.worlds import (
    HERE,
    as_answer,
    catalog_of,
    deployment_of,
    healthy,
    image,
    release,
    request_of,
    resolve_in,
    variant,
)

WORLD: World = {
    "images": {
        "base": healthy(1),
        "web": healthy(2),
        "tool": healthy(3),
        "gone": image(4, {1: release(4, amd64=variant(4, "p"))}, "retired", stable=1),
    },
    "pools": [{"platform": HERE, "provider": "p", "paused": False}],
    "default": "base",
}
SAID = [None, "web", "tool:1", "gone", "nope", "@default"]


@pytest.mark.parametrize("session,template,default", list(product(SAID, SAID, ["base", "gone", None])), ids=str)
def test_request_template_deployment(session: str | None, template: str | None, default: str | None) -> None:
    """The narrower one that speaks decides; what it names wrongly is refused, with the healthy default beside it."""
    world: World = {**WORLD, "default": default}
    words = [Word("session", None, session), Word("template", "work", template)]
    answer = as_answer(resolve_in(world, words))
    assert answer == judge(world, words, HERE, ["session", "template", "agent", "scope", "project", "deployment"])
    words.append(Word("deployment", None, None if default is None else "@default"))
    speaks = next((word for word in words if word.said is not None), None)
    meant = {"web": "web", "tool:1": "tool", "@default": default}
    expected = meant.get(speaks.said or "") if speaks else None
    assert answer.image == (expected if expected != "gone" else None)
    if answer.reason and speaks:
        assert answer.param == {"session": "runtime_image_id", "template": "template"}.get(speaks.level)


def test_a_refusal_through_a_template_names_the_field() -> None:
    outcome = resolve_in(WORLD, [Word("session", None, None), Word("template", "work", "gone")])
    assert isinstance(outcome, Rejected)
    facts = {"reference": "gone", "level": "template", "subject": "work", "field": "runtime_image_id"}
    assert facts.items() <= outcome.refusal.details.items()


WAITING = Policy(support_may_wait=True)


def _of_template(world: World, policy: Policy, said: str = "web") -> Selected | Rejected:
    request = request_of([Word("template", "work", said)])
    return resolve(request, Path(), NOTHING_STANDS, policy, catalog_of(world), deployment_of(world))


@pytest.mark.parametrize("said", ["web", "gone", "nope"])
def test_support_may_wait_for_the_first_pool_and_nothing_else_may(said: str) -> None:
    strict, lenient = (_of_template({**WORLD, "pools": []}, policy, said) for policy in (Policy(), WAITING))
    assert isinstance(strict, Rejected)
    if said != "web":
        assert lenient == strict
        return
    assert strict.refusal.reason == "image_unsupported"
    assert isinstance(lenient, Selected)
    assert [(step.outcome, step.said) for step in lenient.trail][-1] == (Outcome.WARNED, SUPPORT_UNCHECKED)


def test_with_a_pool_support_never_waits() -> None:
    elsewhere: World = {**WORLD, "pools": [{"platform": HERE, "provider": "other", "paused": False}]}
    for policy in (Policy(), WAITING):
        outcome = _of_template(elsewhere, policy)
        assert isinstance(outcome, Rejected)
        assert outcome.refusal.reason == "image_unsupported"
    healthy_one = _of_template(WORLD, WAITING)
    assert isinstance(healthy_one, Selected)
    assert SUPPORT_UNCHECKED not in [step.said for step in healthy_one.trail]


NOW = datetime(2026, 1, 1, tzinfo=UTC)
FULL = Preparation(
    runtime_image_id="web",
    platform=HERE,
    env={"A": "t", "B": "t"},
    secret_env={"S": "t"},
    files=(InlineFile("x", "t", 1), InlineFile("y", "t", 1)),
    packages=Packages(npm=("a",)),
    skills=(Skill("s", "does", ("git",), (InlineFile("SKILL.md", "s", 1),)),),
    plugins=(Plugin("p", (InlineFile("plugin.json", "p", 1),)),),
    setup_commands=(SetupCommand(("true",)), SetupCommand(None, "true")),
    requires=("git",),
)


def template(**changes: Any) -> Template:
    return Template(TemplateId("tmp_1"), ProjectId("prj_1"), "work", NOW, NOW, replace(FULL, **changes), 7)


def test_the_requests_variables_and_files_win_by_their_names() -> None:
    asked = Preparation(env={"B": "r", "C": "r"}, files=(InlineFile("y", "r", 1), InlineFile("z", "r", 1)))
    kept = freeze_template(template(), asked)
    assert kept.env == {"A": "t", "B": "r", "C": "r"}
    assert kept.secret_env == {"S": "t"}
    assert {file.path: file.content for file in kept.files} == {"x": "t", "y": "r", "z": "r"}
    same = ("packages", "skills", "plugins", "setup_commands")
    assert [getattr(kept, name) for name in same] == [getattr(FULL, name) for name in same]
    assert kept.template == TemplateMark(TemplateId("tmp_1"), "work", 7)


NONE, ON, OFF = None, Network.ENABLED, Network.DISABLED


@pytest.mark.parametrize(
    "asked,said,setup,packages,network,while_setup",
    [
        (NONE, NONE, NONE, False, OFF, OFF),
        (NONE, NONE, NONE, True, OFF, ON),
        (NONE, ON, NONE, False, ON, ON),
        (OFF, ON, NONE, False, OFF, OFF),
        (ON, OFF, NONE, False, ON, ON),
        (NONE, OFF, NONE, True, OFF, ON),
        (NONE, NONE, OFF, True, OFF, OFF),
        (NONE, NONE, ON, False, OFF, ON),
        (ON, NONE, OFF, True, ON, OFF),
    ],
)
def test_networks(
    asked: Network | None,
    said: Network | None,
    setup: Network | None,
    packages: bool,  # noqa: FBT001
    network: Network,
    while_setup: Network,
) -> None:
    listed = Packages(python=("x",)) if packages else Packages()
    kept = freeze_template(template(network=said, setup_network=setup, packages=listed), Preparation(network=asked))
    assert (kept.network, kept.setup_network) == (network, while_setup)


def test_without_a_template_the_request_alone_is_kept() -> None:
    said = replace(template(), content=Preparation(env={"A": "t", "B": "t"}, secret_env={"C": "t", "D": "t"}))
    mixed = freeze_template(said, Preparation(env={"C": "r"}, secret_env={"B": "r", "E": "r"}))
    assert mixed.env == {"A": "t", "C": "r"}, "a variable has one value, from the request where that says one"
    assert mixed.secret_env == {"B": "r", "D": "t", "E": "r"}
    nothing = freeze_template(None, Preparation(env={"A": "1"}))
    assert (nothing.prepares, nothing.env, nothing.network) == (False, {"A": "1"}, OFF)
    assert freeze_template(None, Preparation(files=FULL.files)).prepares
    assert freeze_template(template(), Preparation()).prepares


def test_a_frozen_template_is_read_back_as_it_was_and_every_field_counts() -> None:
    kept = freeze_template(template(setup_network=OFF), Preparation())
    assert rebuild(FrozenTemplate, json.loads(kept.document)) == kept
    assert kept.document_digest == sha256(kept.document)
    others = freeze_template(None, Preparation(network=ON, env={}))
    for field in fields(FrozenTemplate):
        changed = replace(kept, **{field.name: getattr(others, field.name)})
        assert changed.document_digest != kept.document_digest, field.name


def test_a_change_replaces_what_it_says() -> None:
    changed = FULL.changed({"env": {}, "packages": {"python": ("b",)}})
    assert changed == replace(FULL, env={}, packages=Packages(npm=("a",), python=("b",)))
    assert FULL.changed({}) == FULL


@pytest.mark.parametrize(
    "change,at",
    [
        ({}, None),
        ({"files": (InlineFile(".sandbay/x", "", 0),)}, ("files", 0)),
        ({"files": (InlineFile(".sandbay", "", 0),)}, ("files", 0)),
        ({"files": (InlineFile(".sandbayx/x", "", 0),)}, None),
        ({"files": (InlineFile("a", "", 0), InlineFile("a/b", "", 0))}, ("files", 1, "path")),
        ({"skills": FULL.skills * 2}, ("skills", 1)),
        ({"plugins": FULL.plugins * 2}, ("plugins", 1)),
        ({"plugins": (Plugin("p", (InlineFile("plugin.json", "", 11 * 1024**2),)),)}, ("files",)),
    ],
)
def test_what_cannot_be_one_templates_content(change: dict[str, Any], at: tuple[str | int, ...] | None) -> None:
    fault = preparation_fault(replace(FULL, **change))
    assert (fault and fault.at) == at


def test_an_outline_is_everything_but_bytes() -> None:
    outline = FULL.outline
    folders = (outline.files, outline.skills[0].files, outline.plugins[0].files)
    assert [[file.content for file in files] for files in folders] == [[None, None], [None], [None]]
    whole = {f.name: getattr(FULL, f.name) for f in fields(FULL) if f.name not in ("files", "skills", "plugins")}
    assert {name: getattr(outline, name) for name in whole} == whole
