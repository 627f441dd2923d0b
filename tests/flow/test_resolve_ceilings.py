"""What may be chosen: every combination of failing checks, in the order of the chain, at whoever's word."""

from itertools import product

import pytest

from sandbay.domain.trail import Policy
from sandbay.flow.resolve import Rejected, Selected, resolve
from tests.flow.oracle import Law, Need, Place, PlainImage, Word, World, judge
from tests.flow.test_resolve_levels import PRECEDENCE
from tests.flow.worlds import (
    HERE,
    as_answer,
    catalog_of,
    deployment_of,
    healthy,
    image,
    path_of,
    release,
    request_of,
    resolve_in,
    some_id,
    standing_of,
    variant,
)

PLACES: list[Place] = [
    ("deployment", None),
    ("project", "growth"),
    ("scope", "team:growth"),
    ("scope", "room:deal"),
]
"""Broad to narrow."""

SILENT = [Word("scope", "room:deal", None), Word("scope", "team:growth", None), Word("project", "growth", None)]
WHO = {
    "session": [Word("session", None, "web"), *SILENT],
    "enforced": [Word("session", None, None), *SILENT[:2], Word("project", "growth", "web", enforced=True)],
    "default": [Word("session", None, None), *SILENT],
}
ORDER = [
    "image_retired",
    "image_not_allowed",
    "image_not_granted",
    "image_unsupported",
    "release_pending",
    "requirements_unmet",
]


def world_with(faults: set[str], default: str = "base") -> World:
    provider = "nobody" if "image_unsupported" in faults else "p"
    target = release(5, "pending" if "release_pending" in faults else "active", amd64=variant(5, provider, node="18.1"))
    web = image(3, {5: target}, "retired" if "image_retired" in faults else "active", stable=5)
    web["restricted"] = "image_not_granted" in faults
    images: dict[str, PlainImage] = {"base": healthy(1), "web": web}
    return {"images": images, "pools": [{"platform": HERE, "provider": "p", "paused": False}], "default": default}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_of_several_failures_the_first_in_order_is_the_answer(who: str, place: Place) -> None:
    # The deployment's list always holds its default, so there the default meets every check but that one.
    for present in product([False, True], repeat=len(ORDER)):
        faults = {name for name, there in zip(ORDER, present, strict=True) if there}
        world = world_with(faults, "web" if who == "default" else "base")
        needs = [Need("node", 20)] if "requirements_unmet" in faults else []
        law = Law({place: ["base", "team=x"]} if "image_not_allowed" in faults else {})
        answer = as_answer(resolve_in(world, WHO[who], needs=needs, law=law))
        assert answer == judge(world, WHO[who], HERE, PRECEDENCE, needs, law)
        passing = {"image_not_allowed"} if (who, place[0]) == ("default", "deployment") else set()
        assert answer.reason == next((name for name in ORDER if name in faults - passing), None), faults
        assert answer.image == (None if answer.reason else "web")


def test_nothing_before_the_ceilings_is_hidden_by_them() -> None:
    closed = Law({place: [] for place in PLACES})
    for text, reason in {"wep": "image_unknown", "web:9": "release_unknown", "web:x": "channel_unknown"}.items():
        assert as_answer(resolve_in(world_with(set()), [Word("session", None, text), *SILENT], law=closed))[0] == reason
    elsewhere = resolve_in(world_with(set()), WHO["session"], "linux/arm64", law=closed)
    assert as_answer(elsewhere).reason == "image_unsupported"


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_whose_list_it_is_is_told_the_broadest_first(place: Place) -> None:
    here = PLACES.index(place)
    law = Law({**{it: ["*"] for it in PLACES[:here]}, **{it: ["base"] for it in PLACES[here:]}})
    outcome = resolve_in(world_with(set()), WHO["session"], law=law)
    assert isinstance(outcome, Rejected)
    refusal = outcome.refusal
    assert (refusal.reason, refusal.param) == ("image_not_allowed", "runtime_image_id")
    where = {"level": place[0], "subject": place[1]}
    assert refusal.details == {"reference": "web", "image": "web", "allow_list": where}


LISTS: dict[str, tuple[list[str], bool]] = {
    "all": (["*"], True),
    "empty": ([], False),
    "name": (["base", "web"], True),
    "id": ([some_id("img", 3)], True),
    "label": (["kind=browser"], True),
    "two labels": (["kind=browser,team=growth"], True),
    "one label of two": (["kind=browser,team=sales"], False),
    "another name": (["webs"], False),
    "a channel is no name": (["web:stable"], False),
}


@pytest.mark.parametrize("first, second", list(product(LISTS, repeat=2)))
def test_lists_along_the_path_are_intersected(first: str, second: str) -> None:
    world = world_with(set())
    world["images"]["web"]["labels"] = {"kind": "browser", "team": "growth"}
    for one, two in product(PLACES, repeat=2):
        law = Law({one: LISTS[first][0], **({} if one == two else {two: LISTS[second][0]})})
        holds = LISTS[first][1] and (one == two or LISTS[second][1])
        answer = as_answer(resolve_in(world, WHO["session"], law=law))
        assert answer.reason == (None if holds else "image_not_allowed")
        assert answer == judge(world, WHO["session"], HERE, PRECEDENCE, law=law)


def test_the_default_is_always_on_the_deployments_own_list_and_on_no_other() -> None:
    world = world_with(set())
    for words in ([*SILENT], [Word("session", None, "base"), *SILENT], [Word("template", "work", "@default"), *SILENT]):
        assert as_answer(resolve_in(world, words, law=Law({PLACES[0]: []}))).image == "base"
        for place in PLACES[1:]:
            assert as_answer(resolve_in(world, words, law=Law({place: []}))).reason == "image_not_allowed"


GRANTED: dict[Place, bool] = {
    **dict.fromkeys(PLACES[1:], True),
    ("scope", "team:sister"): False,
    ("project", "theirs"): False,
}


@pytest.mark.parametrize("place", GRANTED, ids=str)
def test_a_restricted_image_needs_a_grant_on_the_path(place: Place) -> None:
    world = world_with({"image_not_granted"})
    law = Law(grants={place: ["web"]}) if place != ("project", "theirs") else Law()
    outcome = resolve_in(world, WHO["session"], law=law)
    assert isinstance(outcome, Selected) is GRANTED[place]
    if isinstance(outcome, Rejected):
        assert outcome.refusal.reason == "image_not_granted"
        assert outcome.refusal.details == {"reference": "web", "image": "web"}
    other = resolve_in(world, WHO["session"], law=Law(grants={place: ["base"]}))
    assert as_answer(other).reason == "image_not_granted"


def test_a_standing_word_that_fails_is_the_bindings_fault() -> None:
    outcome = resolve_in(world_with({"image_not_granted"}), WHO["enforced"])
    assert isinstance(outcome, Rejected)
    assert outcome.refusal.param is None
    binding = {"level": "project", "subject": "growth", "mode": "enforce", "reference": "web"}
    assert outcome.refusal.details["binding"] == binding
    of_default = resolve_in(world_with({"image_not_granted"}, "web"), WHO["default"])
    assert isinstance(of_default, Rejected)
    assert of_default.refusal.param is None
    assert of_default.refusal.details == {
        "reference": "@default",
        "level": "deployment",
        "subject": None,
        "image": "web",
    }


def test_where_nobodys_session_is_meant_no_ceiling_is_looked_at() -> None:
    world, words = world_with({"image_not_granted"}), WHO["session"]
    standing = standing_of(world, words, Law({place: [] for place in PLACES}, PLACES))
    policies = (Policy(), Policy(ceilings=False))
    answers = [
        resolve(request_of(words), path_of(words), standing, policy, catalog_of(world), deployment_of(world))
        for policy in policies
    ]
    assert [as_answer(it)[:2] for it in answers] == [("override_denied", None), (None, "web")]
