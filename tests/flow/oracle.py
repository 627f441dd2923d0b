"""What selection has to answer, a second time: over plain data, as a list of questions instead of a program.

Written from the specification alone, without the product's parser, catalog or checks, so that the two can only
agree by both being right. A world is a dict of dicts; `tests.flow.worlds` turns the same world into our nouns.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

ID = "[0-9a-z]{20}"
NAME = rf"(?:[a-z0-9][a-z0-9-]{{0,62}}|img_{ID})"


class PlainVariant(TypedDict):
    digest: str
    index: str | None
    providers: list[str]
    tools: dict[str, str]


class PlainRelease(TypedDict):
    id: str
    state: str
    variants: dict[str, PlainVariant]


class PlainImage(TypedDict):
    id: str
    state: str
    labels: dict[str, str]
    restricted: bool
    channels: dict[str, int]
    releases: dict[int, PlainRelease]


class PlainPool(TypedDict):
    platform: str
    provider: str
    paused: bool


class World(TypedDict):
    images: dict[str, PlainImage]
    pools: list[PlainPool]
    default: str | None


class Word(NamedTuple):
    """What one level says. Of several scopes the narrower one comes first. The default says itself."""

    level: str
    subject: str | None
    said: str | None
    enforced: bool = False


Place = tuple[str, str | None]
"""Level and subject."""


class Law(NamedTuple):
    """The ceilings. A list holds names, ids and `label=value,…`; `denied` lets no Session name an image."""

    lists: Mapping[Place, Sequence[str]] = {}
    denied: Sequence[Place] = ()
    grants: Mapping[Place, Sequence[str]] = {}


class Need(NamedTuple):
    """A tool, least version (or any) and whose it is: `session` or `template`."""

    tool: str
    least: int | None
    level: str = "session"


PlainStep = tuple[str, str, str | None, str | None, str | None]


class Answer(NamedTuple):
    """`image`, `number`, `digest` when selected, else `reason`. `trail`: level, outcome, subject, said, reason."""

    reason: str | None
    image: str | None
    number: int | None
    digest: str | None
    level: str | None
    subject: str | None
    param: str | None
    trail: list[PlainStep]


Found = dict[str, Any]
"""What is known of the word so far: `image`, `number`, `release`, `variant`."""


def judge(
    world: World,
    words: Sequence[Word],
    platform: str,
    precedence: Sequence[str],
    needs: Sequence[Need] = (),
    law: Law | None = None,
) -> Answer:
    """Who is asked, who is held against it, and what the one that is asked comes to."""
    default = Word("deployment", None, None if world["default"] is None else "@default")
    strength = [word for level in precedence for word in (*words, default) if word.level == level]
    scopes = [word for word in strength if word.level == "scope"]
    broad_to_narrow = [*(w for w in strength if w.level == "project"), *reversed(scopes)]
    rest: Found = {
        "platform": platform,
        "needs": list(needs),
        "law": law or Law(),
        "places": [("deployment", None), *((w.level, w.subject) for w in broad_to_narrow)],
    }
    speaks = [n for n, word in enumerate(strength) if word.said is not None]
    if not speaks:
        silent: list[PlainStep] = [(w.level, "silent", w.subject, None, None) for w in strength]
        return Answer("no_default_image", None, None, None, None, None, None, silent)
    asked, beside, early = _whose(world, strength, speaks, rest)
    winner = strength[asked]
    found: Found = {"text": winner.said, **rest}
    reason = early or _first_no(QUESTIONS, world, found)
    outcomes = dict.fromkeys(speaks, "overruled") | {beside: "candidate", asked: "refused" if reason else "chosen"}
    trail: list[PlainStep] = [
        (w.level, outcomes.get(n, "silent"), w.subject, w.said, reason if n == asked else None)
        for n, w in enumerate(strength)
    ]
    param = {"session": "runtime_image_id", "template": "template"}.get(winner.level) if reason else None
    if reason == "requirements_unmet":
        param = {"session": "requires", "template": "template"}[found["unmet"].level]
    if reason:
        return Answer(reason, None, None, None, winner.level, winner.subject, param, trail)
    if "deprecated" in (found["image"]["state"], found["release"]["state"]):
        trail.append((winner.level, "warned", winner.subject, "deprecated", None))
    digest = found["variant"]["digest"]
    return Answer(None, found["name"], found["number"], digest, winner.level, winner.subject, None, trail)


def _whose(
    world: World, strength: Sequence[Word], speaks: Sequence[int], rest: Found
) -> tuple[int, int | None, str | None]:
    """The word that is asked, the one that is held beside it, and a no that needs no question.

    A Session that names an image where that is denied is refused. Without anything enforced the strongest word is
    asked. The broadest enforced word is asked when nobody who asks wishes anything, or when it comes to nothing. A wish
    for the very release passes, and the enforced word is asked (if the wish is for its platform); a wish for another
    release of an image that is enforced by its bare name is asked itself. Any other wish is refused.
    """
    said = {n: str(strength[n].said) for n in speaks}
    sessions = [n for n in speaks if strength[n].level == "session"]
    wishes = [n for n in speaks if strength[n].level in ("session", "template")]
    rulers = [n for n in speaks if strength[n].enforced]
    if sessions and set(rest["law"].denied) & set(rest["places"]):
        return sessions[0], None, "override_denied"
    if not rulers or not wishes:
        return (rulers or speaks[:1])[-1], None, None
    ruler, wish = rulers[-1], wishes[0]
    of_ruler, of_wish = ({"text": said[n], **rest} for n in (ruler, wish))
    if _first_no(NAMING, world, of_ruler):
        return ruler, None, None
    unnamed = _first_no(NAMING, world, of_wish)
    if not unnamed and of_ruler["release"]["id"] == of_wish["release"]["id"]:
        ruled, wished = (_first_no(CHAIN, world, it) for it in (of_ruler, of_wish))
        return (wish, ruler, None) if wished and not ruled else (ruler, wish, None)
    if re.fullmatch(NAME, said[ruler]) and of_wish.get("image", {}).get("id") == of_ruler["image"]["id"]:
        return wish, ruler, None
    return wish, ruler, "image_enforced"


def _first_no(questions: "Questions", world: World, found: Found) -> str | None:
    return next((code for code, fails in questions if fails(world, found)), None)


def _malformed(_: World, found: Found) -> bool:
    forms = {
        "default": "@default",
        "id": rf"rel_{ID}",
        "digest": rf"({NAME})@(sha256:[0-9a-f]{{64}})",
        "number": rf"({NAME}):([1-9][0-9]{{0,8}})",
        "channel": rf"({NAME}):([A-Za-z][A-Za-z0-9._-]{{0,62}})",
        "bare": NAME,
    }
    found["form"] = next((form for form, shape in forms.items() if re.fullmatch(shape, found["text"])), None)
    return found["form"] is None


def _no_default(world: World, found: Found) -> bool:
    return found["form"] == "default" and world["default"] is None


def _image_unknown(world: World, found: Found) -> bool:
    if found["form"] == "id":
        return False  # a release id asks for no image
    wanted = world["default"] if found["form"] == "default" else re.split("[:@]", found["text"])[0]
    names = [name for name, image in world["images"].items() if wanted in (name, image["id"])]
    if names:
        found["name"], found["image"] = names[0], world["images"][names[0]]
    return not names


def _channel_unknown(_: World, found: Found) -> bool:
    if found["form"] not in ("channel", "bare", "default"):
        return False
    image: PlainImage = found["image"]
    written = found["text"].partition(":")[2] if found["form"] == "channel" else None
    newest = [] if written else sorted(image["releases"])[-1:]
    numbers = [image["channels"][c] for c in [written or "stable"] if c in image["channels"]] or newest
    if numbers:
        found["number"], found["release"] = numbers[0], image["releases"][numbers[0]]
    return not numbers


def _release_unknown(world: World, found: Found) -> bool:
    wanted = re.split("[:@]", found["text"], maxsplit=1)[-1]

    def is_it(name: str, number: int, release: PlainRelease) -> bool:
        mine = name == found.get("name")
        digests = {d for v in release["variants"].values() for d in (v["digest"], v["index"])}
        answers: dict[str, bool] = {
            "id": release["id"] == found["text"],
            "number": mine and str(number) == wanted,
            "digest": mine and wanted in digests,
        }
        return answers.get(found["form"], mine and number == found.get("number"))

    every = [(n, name) for name, image in world["images"].items() for n in image["releases"]]
    hits = sorted(
        (number, name) for number, name in every if is_it(name, number, world["images"][name]["releases"][number])
    )
    if hits:
        number, name = hits[0]
        image = world["images"][name]
        found |= {"name": name, "image": image, "number": number, "release": image["releases"][number]}
    return not hits


def _no_variant(_: World, found: Found) -> bool:
    found["variant"] = found["release"]["variants"].get(found["platform"])
    if found["variant"] is None or found["form"] != "digest":
        return found["variant"] is None
    named = found["text"].partition("@")[2]
    return named not in (found["variant"]["digest"], found["variant"]["index"])


def _image_retired(_: World, found: Found) -> bool:
    return bool(found["image"]["state"] == "retired")


def _labelled(image: PlainImage, selector: str) -> bool:
    return all(image["labels"].get(pair.split("=")[0]) == pair.split("=")[1] for pair in selector.split(","))


def _not_allowed(world: World, found: Found) -> bool:
    image: PlainImage = found["image"]

    def holds(place: Place, listed: Sequence[str]) -> bool:
        is_default = place[0] == "deployment" and found["name"] == world["default"]
        named = {"*", found["name"], image["id"]} & set(listed)
        return is_default or bool(named) or any("=" in it and _labelled(image, it) for it in listed)

    lists = found["law"].lists
    return not all(holds(place, lists[place]) for place in found["places"] if place in lists)


def _not_granted(_: World, found: Found) -> bool:
    granted = {name for place in found["places"] for name in found["law"].grants.get(place, ())}
    return bool(found["image"]["restricted"]) and found["name"] not in granted


def _no_pool(world: World, found: Found) -> bool:
    where = {(pool["platform"], pool["provider"]) for pool in world["pools"]}
    return where.isdisjoint((found["platform"], provider) for provider in found["variant"]["providers"])


def _release_is(state: str) -> Callable[[World, Found], bool]:
    return lambda _, found: bool(found["release"]["state"] == state)


def _needs_more(_: World, found: Found) -> bool:
    tools = found["variant"]["tools"]
    for need in found["needs"]:
        if need.tool not in tools or (need.least is not None and int(tools[need.tool].split(".")[0]) < need.least):
            found["unmet"] = need
            return True
    return False


Questions = Sequence[tuple[str, Callable[[World, Found], bool]]]

NAMING: Questions = (
    ("invalid_reference", _malformed),
    ("no_default_image", _no_default),
    ("image_unknown", _image_unknown),
    ("channel_unknown", _channel_unknown),
    ("release_unknown", _release_unknown),
)
CHAIN: Questions = (
    ("image_unsupported", _no_variant),
    ("image_retired", _image_retired),
    ("image_not_allowed", _not_allowed),
    ("image_not_granted", _not_granted),
    ("image_unsupported", _no_pool),
    ("release_pending", _release_is("pending")),
    ("release_rejected", _release_is("rejected")),
    ("release_retired", _release_is("retired")),
)
QUESTIONS: Questions = (*NAMING, *CHAIN, ("requirements_unmet", _needs_more))
