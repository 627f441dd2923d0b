"""Selection, exhaustively, with a healthy default beside every case: a silent fallback would be seen.

Each answer is compared with `tests.flow.oracle`, and in the tables also with a reason that is written down here.
"""

from collections.abc import Callable
from itertools import permutations, product

import pytest

from sandbay.domain.trail import Level, Outcome
from sandbay.flow.resolve import Rejected, Selected
from tests.flow.oracle import Need, PlainImage, PlainRelease, Word, World, judge
from tests.flow.worlds import (
    FAULT,
    HERE,
    THERE,
    as_answer,
    asking,
    catalog_of,
    healthy,
    image,
    release,
    resolve_in,
    sha,
    some_id,
    variant,
)

PRECEDENCE = [level.value for level in Level]
SUBJECTS = {"session": None, "template": "work", "project": "growth"}
TARGET, INDEX = 5, 50

VARIANTS = {
    "fits": {"amd64": variant(TARGET, "z", "p", index=INDEX)},
    "other_platform": {"arm64": variant(TARGET, "r", index=INDEX)},
    "no_pool_has_provider": {"amd64": variant(TARGET, "z", index=INDEX)},
    "provider_only_elsewhere": {"amd64": variant(TARGET, "r", index=INDEX)},
}
UNSUPPORTED_BEFORE_RETIRED = {"other_platform"}
UNSUPPORTED_AFTER_RETIRED = {"no_pool_has_provider", "provider_only_elsewhere"}
BAD_STATES = {"pending": "release_pending", "rejected": "release_rejected", "retired": "release_retired"}


def reason_of(image_state: str, release_state: str, fit: str) -> str | None:
    """The order of the checks, written out."""
    if fit in UNSUPPORTED_BEFORE_RETIRED:
        return "image_unsupported"
    if image_state == "retired":
        return "image_retired"
    if fit in UNSUPPORTED_AFTER_RETIRED:
        return "image_unsupported"
    return BAD_STATES.get(release_state)


def world_of(web: PlainImage, default: str | None = "base") -> World:
    return {
        "images": {"base": healthy(1), "web": web, "other": healthy(2)},
        "pools": [
            {"platform": HERE, "provider": "p", "paused": True},
            {"platform": HERE, "provider": "q", "paused": False},
            {"platform": THERE, "provider": "r", "paused": False},
        ],
        "default": default,
    }


def sibling(number: int) -> PlainRelease:
    return release(number, amd64=variant(number, "p", "q"))


WEB = some_id("img", 3)
# Form → the text, and the channels of web; number 5 is always the one that is meant.
FORMS: dict[str, tuple[str, dict[str, int]]] = {
    "bare name": ("web", {"stable": TARGET, "canary": 9}),
    "image id": (WEB, {"stable": TARGET, "canary": 9}),
    "stable, said": ("web:stable", {"stable": TARGET}),
    "another channel": ("web:canary", {"stable": 9, "canary": TARGET}),
    "another channel by id": (f"{WEB}:canary", {"stable": 9, "canary": TARGET}),
    "number": ("web:5", {"stable": 9}),
    "number by id": (f"{WEB}:5", {"stable": 9}),
    "manifest digest": (f"web@{sha(TARGET)}", {"stable": 9}),
    "index digest": (f"web@{sha(INDEX)}", {"stable": 9}),
    "digest by id": (f"{WEB}@{sha(TARGET)}", {"stable": 9}),
    "release id": (some_id("rel", TARGET), {"stable": 9}),
    "the default": ("@default", {"stable": TARGET}),
    "no stable yet": ("web", {"canary": 4}),
    "no stable yet, by id": (WEB, {}),
    "default, no stable yet": ("@default", {}),
}


def web_with(form: str, target: PlainRelease, state: str) -> World:
    """Web has healthy releases around the one that is meant; without a stable channel it is the newest."""
    _, channels = FORMS[form]
    newer = {} if "no stable" in form else {9: sibling(9)}
    web = image(3, {1: sibling(11), 4: sibling(4), TARGET: target, **newer}, state, **channels)
    return world_of(web, "web" if "default" in form else "base")


def words_of(wishes: tuple[str | None, ...]) -> list[Word]:
    return [Word(level, subject, said) for (level, subject), said in zip(SUBJECTS.items(), wishes, strict=True)]


STATES = ["pending", "active", "deprecated", "retired", "rejected"]


def _said_once(text: str) -> list[tuple[str | None, ...]]:
    """At each level, alone and with the healthy default said at all others."""
    return [tuple(text if n == at else other for n in range(3)) for at in range(3) for other in (None, "base")]


@pytest.mark.parametrize("image_state", ["active", "deprecated", "retired"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_and_state_at_every_level(form: str, image_state: str) -> None:
    text, _ = FORMS[form]
    for release_state, (fit, variants) in product(STATES, VARIANTS.items()):
        world = web_with(form, release(TARGET, release_state, **variants), image_state)
        reason, ask = reason_of(image_state, release_state, fit), asking(world)
        for wishes in _said_once(text):
            words = words_of(wishes)
            answer = as_answer(ask(words))
            assert answer == judge(world, words, HERE, PRECEDENCE), (release_state, fit, wishes)

            expected = {
                "base": (None, "base", 1, sha(1)),
                text: (reason, None, None, None) if reason else (None, "web", TARGET, sha(TARGET)),
            }[next(said for said in wishes if said is not None)]
            assert answer[:4] == expected, (release_state, fit, wishes)


UNKNOWN: dict[str, str] = {
    "": "invalid_reference",
    " web": "invalid_reference",
    "web ": "invalid_reference",
    "web\n": "invalid_reference",
    "Web": "invalid_reference",
    "-web": "invalid_reference",
    "web:": "invalid_reference",
    "web:0": "invalid_reference",
    "web:05": "invalid_reference",
    "web:-1": "invalid_reference",
    "web:5:5": "invalid_reference",
    "web@": "invalid_reference",
    "web@5": "invalid_reference",
    f"web@{sha(TARGET).upper()}": "invalid_reference",
    f"web:5@{sha(TARGET)}": "invalid_reference",
    "@Default": "invalid_reference",
    "@default:5": "invalid_reference",
    "base/web": "invalid_reference",
    "../base": "invalid_reference",
    "--base": "invalid_reference",
    "x" * 64: "invalid_reference",
    "x" * 600: "invalid_reference",
    "img_1": "invalid_reference",
    some_id("ses", 1): "invalid_reference",
    "wep": "image_unknown",
    "web-": "image_unknown",
    "stable": "image_unknown",
    "default": "image_unknown",
    "x" * 63: "image_unknown",
    some_id("img", 99): "image_unknown",
    "wep:stable": "image_unknown",
    "wep:5": "image_unknown",
    f"wep@{sha(TARGET)}": "image_unknown",
    "web:nope": "channel_unknown",
    "web:Stable": "channel_unknown",
    "empty": "channel_unknown",
    "empty:stable": "channel_unknown",
    "empty:1": "release_unknown",
    "young:stable": "channel_unknown",
    "young:canary": "channel_unknown",
    "young": "release_pending",
    "web:7": "release_unknown",
    "web:999999999": "release_unknown",
    f"web@{sha(1)}": "release_unknown",  # the default's bytes, asked of web
    f"web@{sha(404)}": "release_unknown",
    some_id("rel", 404): "release_unknown",
}


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_names_nothing_is_answered_at_every_level(text: str) -> None:
    web = image(3, {1: sibling(11), TARGET: sibling(TARGET)}, stable=TARGET)
    world = world_of(web)
    world["images"]["empty"] = image(4, {})
    pending = release(21, "pending", amd64=variant(21, "p"))
    world["images"]["young"] = image(5, {1: sibling(20), 2: pending})
    ask = asking(world)
    for wishes in product([None, "base", text], repeat=3):
        words = words_of(wishes)
        answer = as_answer(ask(words))
        assert answer == judge(world, words, HERE, PRECEDENCE), wishes
        speaks = next((said for said in wishes if said is not None), None)
        if speaks == text:
            assert answer.reason == UNKNOWN[text]


def test_the_default_named_on_purpose_needs_one() -> None:
    world = world_of(sibling_web(), default=None)
    for wishes in product([None, "web", "@default"], repeat=3):
        words = words_of(wishes)
        answer = as_answer(resolve_in(world, words))
        assert answer == judge(world, words, HERE, PRECEDENCE)
        speaks = next((said for said in wishes if said is not None), None)
        assert answer.reason == (None if speaks == "web" else "no_default_image")


def sibling_web() -> PlainImage:
    return image(3, {TARGET: sibling(TARGET)}, stable=TARGET)


def both_platforms() -> World:
    both = release(TARGET, amd64=variant(TARGET, "p", index=INDEX), arm64=variant(6, "r", index=INDEX))
    return world_of(image(3, {TARGET: both, 7: both | {"id": some_id("rel", 7)}}, stable=TARGET))


@pytest.mark.parametrize(
    "text, here, there",
    [
        ("web", TARGET, 6),
        ("web:5", TARGET, 6),
        (some_id("rel", TARGET), TARGET, 6),
        (f"web@{sha(INDEX)}", TARGET, 6),
        (f"web@{sha(TARGET)}", TARGET, None),
        (f"web@{sha(6)}", None, 6),
    ],
)
def test_the_platform_chooses_the_variant_and_a_manifest_digest_only_its_own(
    text: str, here: int | None, there: int | None
) -> None:
    world, words = both_platforms(), [Word("session", None, text)]
    for platform, digest in ((HERE, here), (THERE, there)):
        outcome = resolve_in(world, words, platform)
        assert as_answer(outcome) == judge(world, words, platform, PRECEDENCE)
        if digest is None:
            assert isinstance(outcome, Rejected)
            named = HERE if platform == THERE else THERE
            assert outcome.refusal.details["platforms"] == [named]
        else:
            assert isinstance(outcome, Selected)
            assert (outcome.variant.digest, outcome.release.number) == (sha(digest), TARGET)


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_releases_with_the_same_bytes_a_digest_means_the_oldest(turned: bool) -> None:  # noqa: FBT001
    def with_states(first: str, second: str) -> World:
        releases = {2: release(2, first, amd64=variant(8, "p")), 3: release(3, second, amd64=variant(8, "p"))}
        ordered = dict(reversed(releases.items())) if turned else releases
        return world_of(image(3, ordered, stable=3))

    words = [Word("session", None, f"web@{sha(8)}")]
    assert as_answer(resolve_in(with_states("active", "pending"), words)).number == 2
    assert as_answer(resolve_in(with_states("retired", "active"), words)).reason == "release_retired"


# What the refusal tells: word, changes to the world, details beside reference (and level, subject).
def _details(world: World, text: str, platform: str = HERE) -> dict[str, object]:
    words = [Word("session", None, text), Word("project", "growth", "base")]
    outcome = resolve_in(world, words, platform)
    assert isinstance(outcome, Rejected)
    details = dict(outcome.refusal.details)
    assert details.pop("reference") == text
    assert outcome.refusal.param == "runtime_image_id"
    assert outcome.refusal.message
    return details


def test_details_tell_what_would_have_been_right() -> None:
    world = web_with("bare name", release(TARGET, "active", **VARIANTS["other_platform"]), "active")
    unsupported = {"platform": HERE, "platforms": [THERE]}
    assert _details(world, "web") == unsupported
    assert _details(world, "web:nope") == {"channels": ["canary", "stable"]}
    assert _details(world, "web:7") == {"releases": [1, 4, 5, 9]}
    assert _details(world, "wep") == {}
    assert _details(world, "We b") == {}


def test_details_of_what_no_pool_can_run_name_every_pool() -> None:
    world = web_with("bare name", release(TARGET, "active", **VARIANTS["no_pool_has_provider"]), "active")
    pools = {
        "pool-0": {"platform": HERE, "provider": "p"},
        "pool-1": {"platform": HERE, "provider": "q"},
        "pool-2": {"platform": THERE, "provider": "r"},
    }
    assert _details(world, "web") == {"pools": pools, "platform": HERE, "providers": ["z"]}
    assert _details({**world, "pools": []}, "web") == {"pools": {}, "platform": HERE, "providers": ["z"]}


def test_details_of_a_rejection_carry_its_fault() -> None:
    world = web_with("bare name", release(TARGET, "rejected", **VARIANTS["fits"]), "active")
    assert _details(world, "web") == {"fault": {"code": FAULT.reason.value, "message": FAULT.message}}
    pending = web_with("bare name", release(TARGET, "pending", **VARIANTS["fits"]), "active")
    assert _details(pending, "web") == {}


@pytest.mark.parametrize("level", Level)
def test_a_refusal_points_at_the_request_or_at_whose_word_it_was(level: Level) -> None:
    someone = None if level is Level.DEPLOYMENT else "someone"
    words = [Word(level.value, someone, "wep", enforced=level is Level.DEPLOYMENT)]
    if level is Level.AGENT:
        words.append(Word("project", "growth", None))
    outcome = resolve_in(world_of(sibling_web()), words)
    assert isinstance(outcome, Rejected)
    param = {Level.SESSION: "runtime_image_id", Level.TEMPLATE: "template"}.get(level)
    standing: dict[str, object] = {} if level is Level.SESSION else {"level": level.value, "subject": someone}
    if level is Level.TEMPLATE:
        standing["field"] = "runtime_image_id"
    elif level is not Level.SESSION:
        mode = "enforce" if level is Level.DEPLOYMENT else "prefer"
        standing["binding"] = {"level": level.value, "subject": someone, "mode": mode, "reference": "wep"}
    assert outcome.refusal.param == param
    assert outcome.refusal.details == {"reference": "wep", **standing}


TOOLS = {"node": "18.19.0", "git": "2.39.5"}


def equipped(**tools: str) -> World:
    """Web has these tools, and other images have what web lacks."""
    other = image(2, {1: release(1, amd64=variant(1, "p", node="22.0", jq="1.7"))}, stable=1)
    web = image(3, {TARGET: release(TARGET, amd64=variant(TARGET, "p", index=None, **tools))}, stable=TARGET)
    return {**world_of(web), "images": {"base": other, "web": web}}


NEEDS: list[tuple[list[Need], str | None]] = [
    ([], None),
    ([Need("git", None)], None),
    ([Need("node", 18), Need("git", 2)], None),
    ([Need("node", 19)], "18.19.0"),
    ([Need("git", 2), Need("node", 19), Need("jq", None)], "18.19.0"),
    ([Need("jq", None), Need("node", 19)], None),
    ([Need("broken", None)], None),
]


@pytest.mark.parametrize("level", ["session", "template"])
@pytest.mark.parametrize("needs, found", NEEDS, ids=str)
def test_what_is_required_is_held_against_the_verified_tools_of_what_was_chosen(
    level: str, needs: list[Need], found: str | None
) -> None:
    words = [Word("project", "growth", "web")]
    asked = [need._replace(level=level) for need in needs]
    outcome = resolve_in(equipped(**TOOLS), words, needs=asked)
    assert as_answer(outcome) == judge(equipped(**TOOLS), words, HERE, PRECEDENCE, asked)
    fails = [n for n in asked if n.tool not in TOOLS or int(TOOLS[n.tool].split(".")[0]) < (n.least or 0)]
    if not fails:
        assert isinstance(outcome, Selected)
        assert outcome.tools == TOOLS
        return
    assert isinstance(outcome, Rejected)
    refusal = outcome.refusal
    assert (refusal.reason, refusal.param) == (
        "requirements_unmet",
        {"session": "requires", "template": "template"}[level],
    )
    where = {"field": "requires"} if level == "session" else {"field": "skills.pdf.requires", "template": "design"}
    told = [
        {"tool": n.tool, "wanted": "any" if n.least is None else f">={n.least}", "found": TOOLS.get(n.tool), **where}
        for n in fails
    ]
    binding = {"level": "project", "subject": "growth", "mode": "prefer", "reference": "web"}
    standing = {"reference": "web", "release": "web:5", "level": "project", "subject": "growth", "binding": binding}
    assert refusal.details == {**standing, **told[0], "unmet": told}
    assert told[0]["found"] == found
    assert fails[0].tool in refusal.message


def test_where_nothing_is_verified_what_is_found_is_unknown() -> None:
    words = [Word("session", None, "web")]
    outcome = resolve_in(equipped(), words, needs=[Need("node", None), Need("git", 2, "template")])
    assert isinstance(outcome, Rejected)
    assert outcome.refusal.param == "requires"
    assert [it["found"] for it in outcome.refusal.details["unmet"]] == ["unknown", "unknown"]  # type: ignore[attr-defined]
    assert isinstance(resolve_in(equipped(), words), Selected)


def test_each_variant_has_its_own_tools() -> None:
    both = release(TARGET, amd64=variant(TARGET, "p", node="18.0"), arm64=variant(6, "r", node="22.0"))
    world = world_of(image(3, {TARGET: both}, stable=TARGET))
    words, needs = [Word("session", None, "web")], [Need("node", 20)]
    for platform in (HERE, THERE):
        answer = as_answer(resolve_in(world, words, platform, needs))
        assert answer == judge(world, words, platform, PRECEDENCE, needs)
        assert answer.reason == (None if platform == THERE else "requirements_unmet")


def test_a_release_that_is_not_active_is_told_before_its_tools() -> None:
    for state, reason in BAD_STATES.items():
        world = web_with("bare name", release(TARGET, state, **VARIANTS["fits"]), "active")
        assert as_answer(resolve_in(world, [Word("session", None, "web")], needs=[Need("jq", 9)])).reason == reason


def test_nothing_said_is_no_fault_of_a_field() -> None:
    for words in ([], [Word(level, level, None) for level in PRECEDENCE[:-1]]):
        outcome = resolve_in(world_of(sibling_web(), default=None), words)
        assert isinstance(outcome, Rejected)
        assert (outcome.refusal.param, outcome.refusal.details) == (None, {})
        assert [s.outcome for s in outcome.trail] == [Outcome.SILENT] * (len(words) + 1)


SAYS: dict[str, Callable[[int], str | None]] = {
    "silent": lambda _: None,
    "healthy": lambda place: ["base", "other"][place % 2],
    "unknown": lambda _: "wep",
}


@pytest.mark.parametrize("order", [pytest.param(o, id="-".join(o)) for o in list(permutations(PRECEDENCE))[::40]])
def test_the_order_of_levels_is_data(order: tuple[str, ...]) -> None:
    world = world_of(sibling_web())
    ask = asking(world, precedence=tuple(Level(name) for name in order))
    for kinds in product(SAYS, repeat=4):
        # The deployment has its default, wherever it stands; the words arrive in an order of their own.
        levels = [level for level in order if level != "deployment"]
        words = [
            Word(level, f"at {level}", SAYS[kind](n))
            for n, (level, kind) in enumerate(zip(levels, (*kinds, "healthy"), strict=True))
        ]
        shuffled = sorted(words, key=lambda word: word.level)
        answer = as_answer(ask(shuffled))
        assert answer == judge(world, shuffled, HERE, order)
        words.insert(order.index("deployment"), Word("deployment", None, "@default"))
        strongest = next(word for word in words if word.said is not None)
        assert answer.trail[: len(order)] == [
            (
                word.level,
                ("refused" if word.said == "wep" else "chosen")
                if word is strongest
                else "silent"
                if word.said is None
                else "overruled",
                word.subject,
                word.said,
                "image_unknown" if word is strongest and word.said == "wep" else None,
            )
            for word in words
        ]


def test_a_level_with_several_words_is_heard_in_the_order_they_come() -> None:
    world = world_of(sibling_web())
    room, team = Word("scope", "room:deal", "web"), Word("scope", "team:growth", "other")
    for first, second, name in ((room, team, "web"), (team, room, "other")):
        words = [first, Word("scope", "org:acme", None), second]
        answer = as_answer(resolve_in(world, words))
        assert (answer.image, answer.level, answer.subject) == (name, "scope", first.subject)
        assert [step[1] for step in answer.trail] == ["chosen", "silent", "overruled", "overruled"]


def test_the_same_word_twice_decides_once() -> None:
    outcome = resolve_in(world_of(sibling_web()), [Word("session", None, "web")] * 2)
    assert [s.outcome for s in outcome.trail] == [Outcome.CHOSEN, Outcome.OVERRULED, Outcome.OVERRULED]


@pytest.mark.parametrize("image_state, release_state", [("deprecated", "active"), ("active", "deprecated")])
def test_deprecated_passes_with_one_warning_of_the_level_that_decided(image_state: str, release_state: str) -> None:
    world = web_with("bare name", release(TARGET, release_state, **VARIANTS["fits"]), image_state)
    outcome = resolve_in(world, [Word("project", "growth", "web")])
    assert isinstance(outcome, Selected)
    warned = [s for s in outcome.trail if s.outcome is Outcome.WARNED]
    assert [(s.level, s.subject) for s in warned] == [(Level.PROJECT, "growth")]
    assert outcome.trail[-1] in warned


def test_what_is_selected_is_what_the_catalog_holds() -> None:
    world = both_platforms()
    catalog = catalog_of(world)
    outcome = resolve_in(world, [Word("session", None, "web")], THERE)
    assert isinstance(outcome, Selected)
    entry = catalog.image("web")
    assert entry is not None
    assert outcome.entry == entry
    assert outcome.release == entry.releases[TARGET].release
    assert outcome.variant == outcome.release.variants[1]
    assert outcome.reference == "web"


def test_without_pools_nothing_is_supported() -> None:
    outcome = resolve_in({**both_platforms(), "pools": []}, [Word("session", None, "web")])
    assert isinstance(outcome, Rejected)
    assert outcome.refusal.reason == "image_unsupported"
