"""What holds of selection in any world: properties, with worlds drawn at random around a healthy default."""

import re
from copy import deepcopy
from random import Random
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbay.domain.binding import Binding, Mode
from sandbay.domain.catalog import CatalogView, ImageEntry
from sandbay.domain.ceiling import NOTHING, Override, Standing
from sandbay.domain.ids import ImageId, ProjectId, ReleaseId
from sandbay.domain.path import Subject
from sandbay.domain.reasons import Reason
from sandbay.domain.trail import Level, Outcome, Policy
from sandbay.flow.resolve import Rejected, Selected, resolve
from tests.flow.oracle import Law, Need, Place, PlainImage, PlainPool, PlainRelease, Word, World, judge
from tests.flow.worlds import (
    AMD,
    ARM,
    HERE,
    THERE,
    WRITTEN,
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
    standing_of,
    subject_of,
    variant,
)

NAMES = ["base", "web", "tool"]
STATES = ["active", "active", "pending", "deprecated", "retired", "rejected"]
CHANNELS = ["stable", "canary"]


def _release(dice: Random, own: int) -> PlainRelease:
    platforms = dice.sample(["amd64", "arm64"], dice.randint(1, 2))
    index = dice.choice([None, 5, 6])
    variants = {
        name: variant(dice.randint(1, 4), *dice.sample("pqr", dice.randint(1, 2)), index=index, **_tools(dice))
        for name in platforms
    }
    return release(own, dice.choice(STATES), **variants)


def _tools(dice: Random) -> dict[str, str]:
    names = dice.sample(["node", "git"], dice.randint(0, 2))
    return {name: f"{dice.randint(1, 3)}.{dice.randint(0, 9)}" for name in names}


def _image(dice: Random, own: int) -> PlainImage:
    releases = {n: _release(dice, 100 * own + n) for n in range(1, 1 + dice.randint(0, 3))}
    channels = {name: dice.choice(list(releases)) for name in CHANNELS if releases and dice.random() < 0.6}
    made = image(own, releases, dice.choice(["active", "active", "deprecated", "retired"]), **channels)
    made["labels"] = {"team": dice.choice(["growth", "sales"])} if dice.random() < 0.5 else {}
    made["restricted"] = dice.random() < 0.3
    return made


def _world(dice: Random) -> World:
    pools: list[PlainPool] = [
        {"platform": dice.choice([HERE, THERE]), "provider": dice.choice("pqr"), "paused": dice.random() < 0.5}
        for _ in range(dice.randint(0, 3))
    ]
    return {
        "images": {"base": healthy(1), "web": _image(dice, 2), "tool": _image(dice, 3)},
        "pools": [{"platform": HERE, "provider": "p", "paused": False}, *pools],
        "default": dice.choice(["base", "base", "web", None]),
    }


WORLDS = st.sampled_from([_world(Random(seed)) for seed in range(300)])  # noqa: S311

WHO = [*NAMES, "none", *(some_id("img", n) for n in (1, 2, 3, 9))]
WHICH = ["", ":stable", ":canary", ":beta", ":1", ":2", ":3", ":0", "@x", *(f"@{sha(n)}" for n in range(1, 8))]
RELEASE_IDS = [some_id("rel", 100 * own + n) for own in (1, 2, 3) for n in (1, 2, 3)]
TEXTS = st.sampled_from([*(who + which for who in WHO for which in WHICH), *RELEASE_IDS, "@default", "", "We b"])
SCOPES = ["room:deal", "team:growth", "org:acme"]
LIKELY = st.sampled_from(["web", "web:1", "web:2", "tool", "base", "@default", f"web@{sha(1)}"])


@st.composite
def paths(draw: st.DrawFn) -> list[Word]:
    """What a request and the rows of its path can say, in any order of levels; of scopes the narrower comes first."""
    said = st.none() | LIKELY | TEXTS
    scopes = draw(st.lists(st.sampled_from(SCOPES), unique=True, max_size=3))
    wishes = [
        Word("session", None, draw(said)),
        *([Word("template", "work", draw(said))] if draw(st.booleans()) else []),
    ]
    places = [("agent", "coder"), *(("scope", name) for name in scopes), ("project", "growth")]
    standing = [Word(*place, draw(said), draw(st.booleans())) for place in places[not draw(st.booleans()) :]]
    ruling = [Word("deployment", None, draw(LIKELY), enforced=True)] if draw(st.integers(0, 4)) == 0 else []
    order = draw(ANY_ORDER)
    return sorted([*wishes, *standing, *ruling], key=lambda word: order.index(word.level))


ANY_ORDER = st.permutations([level.value for level in Level])
WORDS = paths()
PLACES = [("deployment", None), ("project", "growth"), *(("scope", name) for name in SCOPES)]
LISTED = st.lists(st.sampled_from(["*", *NAMES, some_id("img", 2), "team=growth", "team=sales"]), max_size=4)
LAWS = st.builds(
    Law,
    st.dictionaries(st.sampled_from(PLACES), LISTED, max_size=2),
    st.lists(st.sampled_from(PLACES), max_size=1),
    st.dictionaries(st.sampled_from(PLACES[1:]), st.lists(st.sampled_from(NAMES)), max_size=2),
)
ORDERS = st.permutations(list(Level)).map(tuple)
PLATFORMS = st.sampled_from([HERE, HERE, THERE])
PARSED = {HERE: AMD, THERE: ARM}
NEEDS = st.lists(
    st.builds(
        Need,
        st.sampled_from(["node", "git", "jq", "broken"]),
        st.sampled_from([None, 1, 2, 3, 4]),
        st.sampled_from(["session", "template"]),
    ),
    max_size=3,
)
QUICK = settings(max_examples=30, deadline=None)


@settings(max_examples=100, deadline=None)
@given(WORLDS, WORDS, LAWS, PLATFORMS, ORDERS, NEEDS)
def test_two_tellings_of_the_rule_agree(
    world: World, words: list[Word], law: Law, platform: str, order: tuple[Level, ...], needs: list[Need]
) -> None:
    answer = as_answer(asking(world, platform, order, needs, law)(words))
    assert answer == judge(world, words, platform, [level.value for level in order], needs, law)


@QUICK
@given(WORLDS, WORDS, PLATFORMS, NEEDS)
def test_what_is_required_only_ever_refuses_what_would_have_been_selected(
    world: World, words: list[Word], platform: str, needs: list[Need]
) -> None:
    """It chooses nothing, and hides no other refusal."""
    without, within = resolve_in(world, words, platform), resolve_in(world, words, platform, needs)
    if isinstance(within, Selected) or within.refusal.reason is not Reason.REQUIREMENTS_UNMET:
        assert within == without
    else:
        assert isinstance(without, Selected)


@QUICK
@given(WORLDS, WORDS, LAWS, PLATFORMS)
def test_same_input_same_answer_and_nothing_is_changed(
    world: World, words: list[Word], law: Law, platform: str
) -> None:
    before = deepcopy((world, words, law))
    ask = asking(world, platform, law=law)
    first = ask(words)
    assert ask(words) == first
    assert (world, words, law) == before
    lists, grants = (dict(reversed(list(it.items()))) for it in (law.lists, law.grants))
    mirrored = Law(lists, law.denied[::-1], grants)
    assert asking(_turned(world), platform, law=mirrored)(words) == first


def _turned(world: World) -> World:
    """The same world: mappings have no order."""
    images: dict[str, PlainImage] = {
        name: it
        | {"releases": dict(reversed(it["releases"].items())), "channels": dict(reversed(it["channels"].items()))}
        for name, it in reversed(world["images"].items())
    }
    return {"images": images, "pools": world["pools"], "default": world["default"]}


@QUICK
@given(WORLDS, WORDS, LAWS, PLATFORMS)
def test_only_what_the_word_that_was_taken_names_is_ever_selected(
    world: World, words: list[Word], law: Law, platform: str
) -> None:
    outcome = resolve_in(world, words, platform, law=law)
    if isinstance(outcome, Rejected):
        return
    (taken,) = [step for step in outcome.trail if step.outcome is Outcome.CHOSEN]
    image, release, said = outcome.entry.image, outcome.release, str(taken.said)
    assert Word(taken.level.value, taken.subject, taken.said, taken.enforced) in [*words, DEFAULT_SAYS]
    named = said.replace("@default", str(world["default"]))
    assert named == release.id or named.partition("@")[0].partition(":")[0] in (image.name, image.id)
    assert release.image == image.id
    if "@sha256" in said:
        assert said.partition("@")[2] in (outcome.variant.digest, outcome.variant.index_digest)


DEFAULT_SAYS = Word("deployment", None, "@default")


@QUICK
@given(WORLDS, WORDS, LAWS, PLATFORMS)
def test_who_names_an_image_gets_that_or_a_no(world: World, words: list[Word], law: Law, platform: str) -> None:
    """Whatever is enforced, preferred, listed or granted beside it."""
    outcome = resolve_in(world, words, platform, law=law)
    wishes = [word for level in ("session", "template") for word in words if word.level == level and word.said]
    if isinstance(outcome, Selected) and wishes:
        alone = resolve_in(world, wishes[:1], platform)
        assert isinstance(alone, Selected)
        assert (outcome.release, outcome.variant) == (alone.release, alone.variant)


@QUICK
@given(WORLDS, WORDS, LAWS, PLATFORMS)
def test_what_is_enforced_beats_what_is_preferred_and_the_broadest_what_is_enforced(
    world: World, words: list[Word], law: Law, platform: str
) -> None:
    wordless = [word._replace(said=None) if word.level in ("session", "template") else word for word in words]
    by_rank = sorted((word for word in wordless if word.said and word.enforced), key=lambda word: _rank(word.level))
    if not by_rank:
        return
    ruler = by_rank[-1]
    outcome = resolve_in(world, wordless, platform, law=law)
    (taken,) = [step for step in outcome.trail if step.outcome in (Outcome.CHOSEN, Outcome.REFUSED)]
    assert (taken.level.value, taken.subject, taken.said) == ruler[:3]
    alone = [ruler if word is ruler else word._replace(said=None) for word in wordless if _stays(word, ruler)]
    assert as_answer(resolve_in(world, alone, platform, law=law))[:-1] == as_answer(outcome)[:-1]


def _stays(word: Word, ruler: Word) -> bool:
    """A deployment that enforces nothing has no word but its default."""
    return word.level != "deployment" or word is ruler


def _rank(level: str) -> int:
    return list(Level).index(Level(level))


def _tightened(law: Law, listed: list[str], place: Place) -> list[Law]:
    """Every way to take away: a list more, or fewer on it; a denial more; fewer grants."""
    more = {place: [it for it in law.lists[place] if it in listed]} if place in law.lists else {place: listed}
    return [
        law._replace(lists={**law.lists, **more}),
        law._replace(denied=[*law.denied, place]),
        law._replace(grants={at: [name for name in names if name in listed] for at, names in law.grants.items()}),
        law._replace(grants={at: names for at, names in law.grants.items() if at != place}),
    ]


@QUICK
@given(WORLDS, WORDS, LAWS, LISTED, st.sampled_from(PLACES), PLATFORMS)
def test_a_tighter_ceiling_never_enlarges_what_anybody_reaches(
    world: World, words: list[Word], law: Law, listed: list[str], place: Place, platform: str
) -> None:
    before = resolve_in(world, words, platform, law=law)
    for tighter in _tightened(law, listed, place):
        after = resolve_in(world, words, platform, law=tighter)
        if isinstance(after, Selected):
            assert after == before
        elif isinstance(before, Selected):
            assert after.refusal.reason in (Reason.IMAGE_NOT_ALLOWED, Reason.IMAGE_NOT_GRANTED, Reason.OVERRIDE_DENIED)


@QUICK
@given(WORLDS, WORDS, LAWS, PLATFORMS)
def test_what_stands_beside_the_path_says_nothing(world: World, words: list[Word], law: Law, platform: str) -> None:
    """Another project's, another agent's and a sister scope's rows; nobody loads them, and they would not matter."""
    beside = [("scope", "team:sister"), ("agent", "another"), ("project", "theirs")]
    request, path, catalog = request_of(words, PARSED[platform]), path_of(words), catalog_of(world)
    standing, deployment = standing_of(world, words, law), deployment_of(world)
    other = Subject.of_project(ProjectId(some_id("prj", 2)))
    subjects = [other if place == ("project", "theirs") else subject_of(*place) for place in beside]
    more = Standing(
        {**standing.bindings, **{it: Binding(it, Mode.ENFORCE, "tool:1", WRITTEN) for it in subjects}},
        {**standing.allowed, **dict.fromkeys(subjects, NOTHING)},
        {**standing.overrides, **dict.fromkeys(subjects, Override.DENY)},
        {**standing.grants, **dict.fromkeys(subjects, frozenset(ImageId(some_id("img", n)) for n in (1, 2, 3)))},
    )
    answers = [resolve(request, path, it, Policy(), catalog, deployment) for it in (standing, more)]
    assert answers[0] == answers[1]


class Counting(CatalogView):
    """A catalog that tells how often it was looked at."""

    looks: ClassVar[list[str]] = []

    def image(self, name_or_id: str) -> ImageEntry | None:
        self.looks.append(name_or_id)
        return super().image(name_or_id)

    def owner_of(self, release: ReleaseId) -> tuple[ImageEntry, int] | None:
        self.looks.append(release)
        return super().owner_of(release)


@QUICK
@given(WORLDS, WORDS, LAWS, PLATFORMS)
def test_the_catalog_is_looked_at_for_two_words_at_most(
    world: World, words: list[Word], law: Law, platform: str
) -> None:
    """The word that is enforced and the wish: each found once, then followed. However many levels there are."""
    Counting.looks.clear()
    view = Counting(catalog_of(world).entries)
    request, standing = request_of(words, PARSED[platform]), standing_of(world, words, law)
    resolve(request, path_of(words), standing, Policy(), view, deployment_of(world))
    assert len(Counting.looks) <= 4
    assert len(set(Counting.looks)) <= 2
    named = {re.split("[:@]", str(word.said), maxsplit=1)[0] for word in words if word.said}
    default = [] if world["default"] is None else [world["images"][world["default"]]["id"]]
    assert set(Counting.looks) <= {*named, *default}


@QUICK
@given(WORLDS, WORDS, LAWS, PLATFORMS)
def test_the_trail_is_whole(world: World, words: list[Word], law: Law, platform: str) -> None:
    outcome = resolve_in(world, words, platform, law=law)
    default = Word("deployment", None, None if world["default"] is None else "@default")
    said = sorted([*words, default], key=lambda w: _rank(w.level))
    steps = [s for s in outcome.trail if s.outcome is not Outcome.WARNED]
    assert [(s.level.value, s.subject, s.said) for s in steps] == [word[:3] for word in said]
    assert [s.enforced for s in steps] == [w.enforced and w.said is not None for w in said]
    decisive = [s for s in steps if s.outcome in (Outcome.CHOSEN, Outcome.REFUSED)]
    assert len(decisive) == any(w.said is not None for w in said)
    for step in decisive:
        assert (step.outcome is Outcome.CHOSEN) is isinstance(outcome, Selected)
        assert step.reason == (None if isinstance(outcome, Selected) else outcome.refusal.reason)
    beside = [s for s in steps if s.outcome is Outcome.CANDIDATE]
    assert len(beside) <= 1
    if beside:  # a wish and what is enforced, one of them decisive
        assert {beside[0].enforced, decisive[0].enforced} == {True, False}
    for step in (s for s in steps if s not in decisive and s not in beside):
        assert step.outcome is (Outcome.SILENT if step.said is None else Outcome.OVERRULED)
        assert step.reason is None
    if isinstance(outcome, Selected):
        (chosen,) = decisive
        assert (outcome.decided_by.level, outcome.decided_by.subject) == (chosen.level, chosen.subject)
        assert outcome.reference == chosen.said


UNRELATED = ["an image", "a release of another image", "a pool that cannot run it", "a weaker word"]


@pytest.mark.parametrize("what", UNRELATED)
@settings(max_examples=30, deadline=None)
@given(WORLDS, TEXTS, PLATFORMS)
def test_what_is_unrelated_changes_nothing(what: str, world: World, text: str, platform: str) -> None:
    words = [Word("session", None, text)]
    before = as_answer(resolve_in(world, words, platform))
    more, said = deepcopy(world), list(words)
    match what:
        case "an image":
            more["images"] = {"another": healthy(7), **more["images"], "zebra": healthy(8)}
        case "a release of another image":
            for name in {"base", "web", "tool"} - {before.image or _named(world, words[0])}:
                releases = more["images"][name]["releases"]
                releases[9] = release(990 + len(name), amd64=variant(9, "p"))
        case "a pool that cannot run it":
            more["pools"] = [{"platform": HERE, "provider": "nobody", "paused": False}, *more["pools"]]
        case _:
            said = [Word("project", "growth", "base"), *words]
    after = as_answer(resolve_in(more, said, platform))
    assert after[:-1] == before[:-1]


def _named(world: World, word: Word) -> str:
    """The image that a refused word is about."""
    who = str(word.said).replace("@default", str(world["default"])).partition("@")[0].partition(":")[0]
    owners = {some_id("rel", 100 * n + m): name for n, name in enumerate(NAMES, 1) for m in (1, 2, 3)}
    ids = {some_id("img", n): name for n, name in enumerate(NAMES, 1)}
    return owners.get(who) or ids.get(who, who)


@QUICK
@given(WORLDS, WORDS, PLATFORMS)
def test_a_refused_word_stays_refused_whatever_weaker_levels_say(
    world: World, words: list[Word], platform: str
) -> None:
    outcome = resolve_in(world, words, platform)
    if isinstance(outcome, Selected) or all(w.said is None for w in words):
        return
    weaker = [
        Word("project", "growth", "base") if word == ("project", "growth", None, False) else word for word in words
    ]
    again = resolve_in(world, weaker, platform)
    assert isinstance(again, Rejected)
    assert again.refusal == outcome.refusal
