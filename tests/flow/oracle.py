"""What selection has to answer, a second time: over plain data, as a list of questions instead of a program.

Written from the specification alone, without the product's parser, catalog or checks, so that the two can only
agree by both being right. A world is a dict of dicts; `tests.flow.worlds` turns the same world into our nouns.
"""

import re
from collections.abc import Callable, Sequence
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
    """What one level says."""

    level: str
    subject: str | None
    said: str | None


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
    world: World, words: Sequence[Word], platform: str, precedence: Sequence[str], needs: Sequence[Need] = ()
) -> Answer:
    """One pass: the words in order of strength, the first one that says something is asked every question."""
    strength = [word for level in precedence for word in words if word.level == level]
    speaks = [n for n, word in enumerate(strength) if word.said is not None]
    if not speaks:
        silent: list[PlainStep] = [(w.level, "silent", w.subject, None, None) for w in strength]
        return Answer("no_default_image", None, None, None, None, None, None, silent)
    winner = strength[speaks[0]]
    found: Found = {"text": winner.said, "platform": platform, "needs": list(needs)}
    reason = next((code for code, fails in QUESTIONS if fails(world, found)), None)
    outcomes = {speaks[0]: "refused" if reason else "chosen", **dict.fromkeys(speaks[1:], "overruled")}
    trail: list[PlainStep] = [
        (w.level, outcomes.get(n, "silent"), w.subject, w.said, reason if n == speaks[0] else None)
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


QUESTIONS: Sequence[tuple[str, Callable[[World, Found], bool]]] = (
    ("invalid_reference", _malformed),
    ("no_default_image", _no_default),
    ("image_unknown", _image_unknown),
    ("channel_unknown", _channel_unknown),
    ("release_unknown", _release_unknown),
    ("image_unsupported", _no_variant),
    ("image_retired", _image_retired),
    ("image_unsupported", _no_pool),
    ("release_pending", _release_is("pending")),
    ("release_rejected", _release_is("rejected")),
    ("release_retired", _release_is("retired")),
    ("requirements_unmet", _needs_more),
)
