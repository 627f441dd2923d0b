"""What holds of selection in any world: properties, with worlds drawn at random around a healthy default."""

from copy import deepcopy
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbay.domain.reasons import Reason
from sandbay.domain.trail import Level, Outcome
from sandbay.flow.resolve import Rejected, Selected
from tests.flow.oracle import Need, PlainImage, PlainPool, PlainRelease, Word, World, judge
from tests.flow.worlds import (
    HERE,
    THERE,
    as_answer,
    asking,
    healthy,
    image,
    release,
    resolve_in,
    sha,
    some_id,
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
    return image(own, releases, dice.choice(["active", "active", "deprecated", "retired"]), **channels)


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
LEVELS = st.sampled_from([level.value for level in Level])
WORDS = st.lists(st.builds(Word, LEVELS, st.sampled_from([None, "a", "b"]), st.none() | TEXTS), max_size=6)
ORDERS = st.permutations(list(Level)).map(tuple)
PLATFORMS = st.sampled_from([HERE, HERE, THERE])
NEEDS = st.lists(
    st.builds(
        Need,
        st.sampled_from(["node", "git", "jq", "broken"]),
        st.sampled_from([None, 1, 2, 3, 4]),
        st.sampled_from(["session", "template"]),
    ),
    max_size=3,
)
QUICK = settings(max_examples=60, deadline=None)


@QUICK
@given(WORLDS, WORDS, PLATFORMS, ORDERS, NEEDS)
def test_two_tellings_of_the_rule_agree(
    world: World, words: list[Word], platform: str, order: tuple[Level, ...], needs: list[Need]
) -> None:
    answer = as_answer(asking(world, platform, order, needs)(words))
    assert answer == judge(world, words, platform, [level.value for level in order], needs)


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
@given(WORLDS, WORDS, PLATFORMS)
def test_same_input_same_answer_and_nothing_is_changed(world: World, words: list[Word], platform: str) -> None:
    before = deepcopy((world, words))
    ask = asking(world, platform)
    first = ask(words)
    assert ask(words) == first
    assert (world, words) == before
    assert asking(_turned(world), platform)(words) == first


def _turned(world: World) -> World:
    """The same world: mappings have no order."""
    images: dict[str, PlainImage] = {
        name: it
        | {"releases": dict(reversed(it["releases"].items())), "channels": dict(reversed(it["channels"].items()))}
        for name, it in reversed(world["images"].items())
    }
    return {"images": images, "pools": world["pools"], "default": world["default"]}


@QUICK
@given(WORLDS, WORDS, PLATFORMS)
def test_only_what_the_strongest_word_names_is_ever_selected(world: World, words: list[Word], platform: str) -> None:
    outcome = resolve_in(world, words, platform)
    strongest = min((w for w in words if w.said is not None), key=lambda w: _rank(w.level), default=None)
    if isinstance(outcome, Rejected):
        return
    assert strongest is not None
    assert strongest.said is not None
    image, release = outcome.entry.image, outcome.release
    named = strongest.said.replace("@default", str(world["default"]))
    assert named == release.id or named.partition("@")[0].partition(":")[0] in (image.name, image.id)
    assert release.image == image.id
    if "@sha256" in strongest.said:
        assert strongest.said.partition("@")[2] in (outcome.variant.digest, outcome.variant.index_digest)


def _rank(level: str) -> int:
    return list(Level).index(Level(level))


@QUICK
@given(WORLDS, WORDS, PLATFORMS)
def test_the_trail_is_whole(world: World, words: list[Word], platform: str) -> None:
    outcome = resolve_in(world, words, platform)
    steps = [s for s in outcome.trail if s.outcome is not Outcome.WARNED]
    assert [(s.level.value, s.subject, s.said) for s in steps] == sorted(words, key=lambda w: _rank(w.level))
    decisive = [s for s in steps if s.outcome in (Outcome.CHOSEN, Outcome.REFUSED)]
    assert len(decisive) == any(w.said is not None for w in words)
    for step in steps:
        if step in decisive:
            assert (step.outcome is Outcome.CHOSEN) is isinstance(outcome, Selected)
            refusal = None if isinstance(outcome, Selected) else outcome.refusal.reason
            assert step.reason == refusal
        else:
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
            said = [Word("project", "growth", "base"), *words, Word("deployment", None, "@default")]
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
    weaker = [*words, Word("deployment", "spare", "base")]
    again = resolve_in(world, weaker, platform)
    assert isinstance(again, Rejected)
    assert again.refusal == outcome.refusal
