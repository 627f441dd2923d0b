"""Who decides: every combination of what the levels can say, with a healthy default always there.

Each level that says something names an image of its own, so that the answer tells whose word was taken.
"""

from collections.abc import Sequence
from itertools import product

import pytest

from sandbay.domain.ceiling import Override, Standing
from sandbay.domain.path import DEPLOYMENT, Subject
from sandbay.domain.trail import Level, Policy
from sandbay.flow.resolve import Rejected, resolve
from tests.flow.oracle import Law, Place, PlainImage, Word, World, judge
from tests.flow.worlds import (
    HERE,
    PROJECT,
    THERE,
    as_answer,
    asking,
    catalog_of,
    deployment_of,
    healthy,
    image,
    path_of,
    release,
    request_of,
    resolve_in,
    sha,
    some_id,
    variant,
)

PRECEDENCE = [level.value for level in Level]
STANDING: dict[Place, str] = {
    ("agent", "coder"): "tool",
    ("scope", "room:deal"): "room",
    ("scope", "team:growth"): "team",
    ("project", "growth"): "own",
}
"""Narrow to broad: where a binding can stand, and the image that it names there."""

WORLD: World = {
    "images": {name: healthy(n) for n, name in enumerate(["base", "wish", "work", "ruled", *STANDING.values()], 1)},
    "pools": [{"platform": HERE, "provider": "p", "paused": False}],
    "default": "base",
}
DENIED: list[Place | None] = [None, ("deployment", None), ("project", "growth"), ("scope", "team:growth")]
KINDS = ["silent", "prefer", "enforce"]


def expected(session: str | None, template: str | None, kinds: Sequence[str], ruled: bool, denied: object) -> str:  # noqa: FBT001
    """The image or the reason, written down once more for these words only."""
    names = list(STANDING.values())
    if session and denied:
        return "override_denied"
    enforced = [name for name, kind in zip(names, kinds, strict=True) if kind == "enforce"] + ["ruled"] * ruled
    wish = session or template
    if enforced and wish and wish != enforced[-1]:
        return "image_enforced"
    preferred = [name for name, kind in zip(names, kinds, strict=True) if kind == "prefer"]
    return enforced[-1] if enforced else [*filter(None, [session, template]), *preferred, "base"][0]


@pytest.mark.parametrize("denied", DENIED, ids=str)
@pytest.mark.parametrize("ruled", [False, True], ids=["", "deployment enforces"])
def test_every_combination_of_levels(ruled: bool, denied: Place | None) -> None:  # noqa: FBT001
    ask = asking(WORLD, law=Law(denied=[denied] if denied else []))
    for kinds in product(KINDS, repeat=len(STANDING)):
        standing = [
            Word(*place, None if kind == "silent" else name, kind == "enforce")
            for (place, name), kind in zip(STANDING.items(), kinds, strict=True)
        ]
        ruling = [Word("deployment", None, "ruled", enforced=True)] if ruled else []
        ruler = ["ruled" if ruled else next((w.said for w in reversed(standing) if w.enforced), None)]
        for session, template in product([None, "wish", *filter(None, ruler)], [None, "work", *filter(None, ruler)]):
            words = [Word("session", None, session), Word("template", "work", template), *standing, *ruling]
            answer = as_answer(ask(words))
            case = (session, template, kinds)
            assert answer.reason or answer.image == expected(session, template, kinds, ruled, denied), case
            assert answer.image or answer.reason == expected(session, template, kinds, ruled, denied), case
            assert answer == judge(WORLD, words, HERE, PRECEDENCE, law=Law(denied=[denied] if denied else [])), case


def web() -> PlainImage:
    """Release 5 for both platforms with one index; 6 is newer, 4 is retired, 3 pending."""
    both = release(205, amd64=variant(5, "p", index=50), arm64=variant(55, "p", index=50))
    others = {
        3: release(203, "pending", amd64=variant(3, "p")),
        4: release(204, "retired", amd64=variant(4, "p")),
        6: release(206, amd64=variant(6, "p")),
    }
    return image(20, {**others, 5: both}, stable=5, canary=6)


WEB: World = {**WORLD, "images": {**WORLD["images"], "web": web()}}
OWN, FIVE = some_id("img", 20), some_id("rel", 205)

PASSES = {
    # what is enforced, what is wished → the release, and whose word it is
    ("web:5", "web:5"): (5, "project"),
    ("web:5", "web"): (5, "project"),
    ("web:5", FIVE): (5, "project"),
    ("web:5", f"{OWN}:5"): (5, "project"),
    ("web:5", f"web@{sha(5)}"): (5, "project"),
    ("web:5", f"web@{sha(50)}"): (5, "project"),
    (FIVE, "web:stable"): (5, "project"),
    ("web:canary", "web:6"): (6, "project"),
    ("web:stable", "web"): (5, "project"),
    ("web", "web"): (5, "project"),
    ("web", "web:5"): (5, "project"),
    ("web", "web:6"): (6, "session"),
    ("web", "web:canary"): (6, "session"),
    ("web", f"web@{sha(6)}"): (6, "session"),
    ("web", some_id("rel", 206)): (6, "session"),
    (OWN, f"{OWN}:6"): (6, "session"),
    (OWN, "web:6"): (6, "session"),
    ("@default", "base:1"): (1, "project"),
    ("base", "@default"): (1, "project"),
}


@pytest.mark.parametrize("enforced, wished", PASSES)
def test_a_wish_for_what_is_enforced_passes(enforced: str, wished: str) -> None:
    words = [Word("session", None, wished), Word("project", "growth", enforced, enforced=True)]
    answer = as_answer(resolve_in(WEB, words))
    assert answer == judge(WEB, words, HERE, PRECEDENCE)
    assert (answer.number, answer.level) == PASSES[enforced, wished]
    beside = {"session": "project", "project": "session"}[str(answer.level)]
    assert [step[0] for step in answer.trail if step[1] == "candidate"] == [beside]


REFUSED = {
    # what is enforced, what is wished → the reason, and the field of the request at fault
    ("web:5", "web:6"): ("image_enforced", "runtime_image_id"),
    ("web:5", "web:canary"): ("image_enforced", "runtime_image_id"),
    ("web:stable", "web:6"): ("image_enforced", "runtime_image_id"),  # only the bare name leaves the release open
    ("web", "base"): ("image_enforced", "runtime_image_id"),
    ("web", "@default"): ("image_enforced", "runtime_image_id"),
    ("web", some_id("rel", 1)): ("image_enforced", "runtime_image_id"),
    ("web", "wep"): ("image_enforced", "runtime_image_id"),
    ("web", "We b"): ("image_enforced", "runtime_image_id"),
    ("web:5", "web:99"): ("image_enforced", "runtime_image_id"),
    ("@default", "web"): ("image_enforced", "runtime_image_id"),
    ("web", "web:99"): ("release_unknown", "runtime_image_id"),
    ("web", "web:beta"): ("channel_unknown", "runtime_image_id"),
    ("web", "web:4"): ("release_retired", "runtime_image_id"),
    ("web", "web:3"): ("release_pending", "runtime_image_id"),
    ("web:5", f"web@{sha(55)}"): ("image_unsupported", "runtime_image_id"),  # the same release, other bytes
    ("web:4", "web:4"): ("release_retired", None),
    ("web:4", "base"): ("image_enforced", "runtime_image_id"),
    ("wep", "base"): ("image_unknown", None),
    ("web:99", "web:99"): ("release_unknown", None),
    ("web:beta", "web"): ("channel_unknown", None),
}


@pytest.mark.parametrize("enforced, wished", REFUSED)
def test_a_wish_for_anything_else_is_refused(enforced: str, wished: str) -> None:
    words = [Word("session", None, wished), Word("project", "growth", enforced, enforced=True)]
    outcome = resolve_in(WEB, words)
    assert as_answer(outcome) == judge(WEB, words, HERE, PRECEDENCE)
    assert isinstance(outcome, Rejected)
    reason, param = REFUSED[enforced, wished]
    assert (outcome.refusal.reason, outcome.refusal.param) == (reason, param)
    binding = {"level": "project", "subject": "growth", "mode": "enforce", "reference": enforced}
    assert outcome.refusal.details.get("binding") == (binding if reason == "image_enforced" or param is None else None)


def test_a_template_that_names_another_is_at_fault_and_the_binding_is_named() -> None:
    words = [
        Word("session", None, None),
        Word("template", "work", "web:6"),
        Word("project", "growth", None),
        Word("deployment", None, "web:5", enforced=True),
    ]
    outcome = resolve_in(WEB, words)
    assert isinstance(outcome, Rejected)
    refusal = outcome.refusal
    assert (refusal.reason, refusal.param) == ("image_enforced", "template")
    assert refusal.message == "the deployment enforces web:5"
    assert refusal.details == {
        "reference": "web:6",
        "field": "runtime_image_id",
        "level": "template",
        "subject": "work",
        "binding": {"level": "deployment", "subject": None, "mode": "enforce", "reference": "web:5"},
    }


def test_a_request_overrules_its_template_before_anything_enforced_is_held_against_it() -> None:
    words = [
        Word("session", None, "web:5"),
        Word("template", "work", "base"),
        Word("project", "growth", "web:5", enforced=True),
    ]
    answer = as_answer(resolve_in(WEB, words))
    assert (answer.image, answer.number) == ("web", 5)
    assert [step[1] for step in answer.trail] == ["candidate", "overruled", "chosen", "overruled"]


def test_a_denial_names_its_place_and_refuses_only_what_the_request_itself_names() -> None:
    room, law = Word("scope", "room:deal", "room"), Law(denied=[("scope", "room:deal")])
    outcome = resolve_in(WORLD, [Word("session", None, "room"), room], law=law)
    assert isinstance(outcome, Rejected)
    refusal = outcome.refusal
    assert (refusal.reason, refusal.param) == ("override_denied", "runtime_image_id")
    assert refusal.details == {"reference": "room", "override": {"level": "scope", "subject": "room:deal"}}
    for word in (Word("session", None, None), Word("template", "work", "wish")):
        assert as_answer(resolve_in(WORLD, [word, room], law=law)).image == (word.said or "room")
    assert as_answer(resolve_in(WORLD, [Word("session", None, "room")], law=law)).image == "room"


def test_a_place_that_allows_denies_nothing() -> None:
    words = [Word("session", None, "room"), Word("project", "growth", None)]
    allowing = Standing(overrides={DEPLOYMENT: Override.ALLOW, Subject.of_project(PROJECT): Override.ALLOW})
    request, path = request_of(words), path_of(words)
    outcome = resolve(request, path, allowing, Policy(), catalog_of(WORLD), deployment_of(WORLD))
    assert as_answer(outcome).image == "room"


def test_on_another_platform_the_wish_is_for_its_own_variant() -> None:
    words = [Word("session", None, f"web@{sha(55)}"), Word("project", "growth", "web:5", enforced=True)]
    elsewhere: World = {**WEB, "pools": [*WEB["pools"], {"platform": THERE, "provider": "p", "paused": False}]}
    answer = as_answer(resolve_in(elsewhere, words, THERE))
    assert answer == judge(elsewhere, words, THERE, PRECEDENCE)
    assert (answer.number, answer.digest) == (5, sha(55))
