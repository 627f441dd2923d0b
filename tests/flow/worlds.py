"""Worlds for the tests of `flow`: the oracle's plain data, and the same as our nouns."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sandbay.domain.binding import Binding, Mode, Written
from sandbay.domain.catalog import CatalogView, Channel, Image, ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.ceiling import AllowList, Override, Standing, Tier
from sandbay.domain.choosing import Request
from sandbay.domain.contract import Checked, ContractReport, ToolReport, Violation
from sandbay.domain.deployment import Deployment, Pool, PoolAdmission
from sandbay.domain.ids import ImageId, ProjectId, ReleaseId
from sandbay.domain.path import Path, Subject
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import (
    IMAGE_ID,
    MANIFEST_DIGEST,
    Artifact,
    Fault,
    Known,
    Release,
    ReleaseState,
    ReleaseStatus,
    Variant,
)
from sandbay.domain.requirement import Required, Requirement
from sandbay.domain.trail import EXPLICIT, Level, Policy, Saying
from sandbay.flow.resolve import Rejected, Selected, resolve
from tests.flow.oracle import Answer, Law, Need, PlainImage, PlainRelease, PlainVariant, Word, World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AMD, ARM = Platform.of("linux", "amd64"), Platform.of("linux", "arm64")
HERE, THERE = str(AMD), str(ARM)
FAULT = Fault(Reason.DIFF_ID_MISMATCH, "not the tar that the config lists", {"layer": 2})


def sha(number: int) -> str:
    return f"sha256:{number:064x}"


def some_id(kind: str, number: int) -> str:
    return f"{kind}_{number:020d}"


def variant(number: int, *providers: str, index: int | None = None, **tools: str) -> PlainVariant:
    """`tools` are verified ones: name=version."""
    digest, of_index = sha(number), None if index is None else sha(index)
    return {"digest": digest, "index": of_index, "providers": list(providers), "tools": tools}


def release(number: int, state: str = "active", **variants: PlainVariant) -> PlainRelease:
    """Variants by `amd64` and `arm64`."""
    by_platform = {"amd64": HERE, "arm64": THERE}
    return {
        "id": some_id("rel", number),
        "state": state,
        "variants": {by_platform[name]: it for name, it in variants.items()},
    }


def image(number: int, releases: dict[int, PlainRelease], state: str = "active", **channels: int) -> PlainImage:
    return {
        "id": some_id("img", number),
        "state": state,
        "labels": {},
        "restricted": False,
        "channels": channels,
        "releases": releases,
    }


def healthy(number: int) -> PlainImage:
    """An image that every node of the tables could run at once: what a silent fallback would take."""
    return image(number, {1: release(number, amd64=variant(number, "p", "q"))}, stable=1)


def catalog_of(world: World) -> CatalogView:
    return CatalogView(tuple(_entry(name, it) for name, it in world["images"].items()))


def _entry(name: str, it: PlainImage) -> ImageEntry:
    own = ImageId(it["id"])
    releases = {
        number: ReleaseEntry(
            Release(ReleaseId(r["id"]), own, number, tuple(_variant(p, v) for p, v in r["variants"].items())),
            ReleaseStatus(ReleaseState(r["state"]), FAULT if r["state"] == "rejected" else None),
            checked={_variant(p, v).content_key: _report(v["tools"]) for p, v in r["variants"].items() if v["tools"]},
        )
        for number, r in it["releases"].items()
    }
    channels = {channel: Channel(own, channel, number) for channel, number in it["channels"].items()}
    tier = Tier.RESTRICTED if it["restricted"] else Tier.STANDARD
    named = Image(own, name, NOW, labels=it["labels"], state=ImageState(it["state"]), tier=tier)
    return ImageEntry(named, releases, channels)


def _variant(platform: str, it: PlainVariant) -> Variant:
    parsed = Platform.parse(platform)
    assert parsed is not None
    return Variant(
        platform=parsed,
        artifacts={
            MANIFEST_DIGEST: Artifact(it["digest"], Known.COMPUTED),
            IMAGE_ID: Artifact(it["digest"][:-1] + "f", Known.COMPUTED),
        },
        providers=tuple(it["providers"]),
        index_digest=it["index"],
    )


def _report(tools: dict[str, str]) -> Checked:
    """With these tools verified, beside one that is not."""
    broken = ToolReport("x --version", exit=1, printed="9.9", version="9.9", violation=Violation.FAILED)
    verified = {name: ToolReport(name, version=version) for name, version in tools.items()}
    return Checked(1, NOW, ContractReport(boots=True, tools={"broken": broken, **verified}))


def required_of(needs: Sequence[Need]) -> tuple[Required, ...]:
    return tuple(
        Required(
            Requirement(need.tool, "" if need.least is None else f">={need.least}"),
            Level(need.level),
            "requires" if need.level == "session" else "skills.pdf.requires",
            None if need.level == "session" else "design",
        )
        for need in needs
    )


def deployment_of(world: World) -> Deployment:
    pools = []
    for number, pool in enumerate(world["pools"]):
        platform = Platform.parse(pool["platform"])
        assert platform is not None
        admission = PoolAdmission.PAUSED if pool["paused"] else PoolAdmission.OPEN
        pools.append(Pool(f"pool-{number}", pool["provider"], platform, admission=admission))
    default = world["default"]
    default_id = None if default is None else ImageId(world["images"][default]["id"])
    return Deployment(3, AMD, tuple(pools), default_id)


PROJECT = ProjectId(some_id("prj", 1))
WRITTEN = Written("tests", NOW)


def request_of(words: Sequence[Word], platform: Platform = AMD, needs: Sequence[Need] = ()) -> Request:
    wishes = [Saying(Level(word.level), word.subject, word.said) for word in words if word.level in EXPLICIT]
    return Request(tuple(wishes), platform, required_of(needs))


def path_of(words: Sequence[Word]) -> Path:
    """At most one project and one agent; an agent comes with a project. Of scopes the narrower one comes first."""
    of_level = {level: [word.subject for word in words if word.level == level] for level in Level}
    project, agent = (next(iter(of_level[level]), None) for level in (Level.PROJECT, Level.AGENT))
    scopes = tuple(str(name) for name in reversed(of_level[Level.SCOPE]))
    return Path(PROJECT if of_level[Level.PROJECT] else None, project, scopes, agent)


def subject_of(level: str, name: str | None) -> Subject:
    match level:
        case "project":
            return Subject.of_project(PROJECT)
        case "agent":
            return Subject.of_agent(PROJECT, str(name))
        case _:
            return Subject(Level(level), name)


def standing_of(world: World, words: Sequence[Word], law: Law | None = None) -> Standing:
    """What stands, also for places that are not on the path."""
    lists, denied, grants = law or Law()
    bound = [word for word in words if word.level not in EXPLICIT and word.said is not None]
    bindings = [
        Binding(subject_of(w.level, w.subject), Mode.ENFORCE if w.enforced else Mode.PREFER, str(w.said), WRITTEN)
        for w in bound
    ]
    granted = {place: (world["images"][name]["id"] for name in names) for place, names in grants.items()}
    return Standing(
        {it.subject: it for it in bindings},
        {subject_of(*place): _list_of(listed) for place, listed in lists.items()},
        {subject_of(*place): Override.DENY for place in denied},
        {subject_of(*place): frozenset(map(ImageId, ids)) for place, ids in granted.items()},
    )


def _list_of(listed: Sequence[str]) -> AllowList:
    selectors = (dict(pair.split("=") for pair in it.split(",")) for it in listed if "=" in it)
    return AllowList("*" in listed, frozenset(it for it in listed if "=" not in it), tuple(selectors))


Ask = Callable[[Sequence[Word]], Selected | Rejected]


def asking(
    world: World,
    platform: str = HERE,
    precedence: tuple[Level, ...] = tuple(Level),
    needs: Sequence[Need] = (),
    law: Law | None = None,
) -> Ask:
    """`resolve` in one world, to be asked often. The deployment's default is the world's own."""
    parsed = Platform.parse(platform)
    assert parsed is not None
    catalog, deployment, policy = catalog_of(world), deployment_of(world), Policy(precedence)

    def ask(words: Sequence[Word]) -> Selected | Rejected:
        assert all(word.enforced for word in words if word.level == "deployment")
        request, standing = request_of(words, parsed, needs), standing_of(world, words, law)
        return resolve(request, path_of(words), standing, policy, catalog, deployment)

    return ask


def resolve_in(
    world: World, words: Sequence[Word], platform: str = HERE, needs: Sequence[Need] = (), law: Law | None = None
) -> Selected | Rejected:
    return asking(world, platform, needs=needs, law=law)(words)


def as_answer(outcome: Selected | Rejected) -> Answer:
    """The product's answer in the oracle's words."""
    trail = [
        (s.level.value, s.outcome.value, s.subject, s.said, s.reason.value if s.reason else None) for s in outcome.trail
    ]
    if isinstance(outcome, Selected):
        by = outcome.decided_by
        name, number = outcome.entry.image.name, outcome.release.number
        return Answer(None, name, number, outcome.variant.digest, by.level.value, by.subject, None, trail)
    level, subject = _blamed(outcome)
    refusal = outcome.refusal
    return Answer(refusal.reason.value, None, None, None, level, subject, refusal.param, trail)


def _blamed(outcome: Rejected) -> tuple[str | None, str | None]:
    """Whose word the details say it was; a request's own word needs no naming."""
    details: dict[str, Any] = dict(outcome.refusal.details)
    if "level" in details:
        return details["level"], details["subject"]
    refused = [s for s in outcome.trail if s.outcome.value == "refused"]
    return ("session", refused[0].subject) if refused else (None, None)
