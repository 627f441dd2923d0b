"""What the store's tests put into it: a small installation, and nouns that differ in what a test says."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sandbay.domain.allocation import Allocation
from sandbay.domain.binding import Binding, Mode, Written
from sandbay.domain.catalog import Image
from sandbay.domain.ceiling import NOTHING, AllowList, AllowListAt, Grant, Override, OverrideAt
from sandbay.domain.contract import Checked, Contract, ContractReport, ToolReport, Violation
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import Deployment, Pool, SandboxSize
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import (
    AllocationId,
    FrozenId,
    ImageId,
    KeyId,
    NodeId,
    ProjectId,
    PromotionId,
    ReleaseId,
    SessionId,
    TemplateId,
    UploadId,
)
from sandbay.domain.inline import Encoding, InlineFile
from sandbay.domain.node import Node
from sandbay.domain.package import Packages
from sandbay.domain.path import DEPLOYMENT, Subject
from sandbay.domain.platform import Platform
from sandbay.domain.project import Key, KeyKind, Project
from sandbay.domain.promotion import Promotion
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import (
    IMAGE_ID,
    MANIFEST_DIGEST,
    Artifact,
    ContentKey,
    Fault,
    ImageConfig,
    Known,
    Layer,
    Release,
    ReleaseState,
    Variant,
)
from sandbay.domain.scope import Scope
from sandbay.domain.session import Session, SessionState
from sandbay.domain.skill import Plugin, Skill
from sandbay.domain.template import FrozenTemplate, Preparation, SetupCommand, Template
from sandbay.domain.trail import DecidedBy, Level, Outcome, Step
from sandbay.flow.freeze import freeze, freeze_template
from sandbay.ports.changes import (
    AddAudit,
    AddImage,
    AddProject,
    AddRelease,
    AddReport,
    AdmitSession,
    Change,
    Conflict,
    ConflictKind,
    MoveChannel,
    MoveRelease,
    PutNode,
    PutReadiness,
    Reserve,
    SetContract,
    SetDeployment,
)
from sandbay.ports.records import AuditEntry, Page, Upload
from sandbay.ports.secrets import SecretsOf
from sandbay.ports.standing import RowsOf, Scopes, Standard
from sandbay.ports.store import (
    Audit,
    DueChecks,
    Images,
    Keys,
    Needs,
    Nodes,
    OpenAllocations,
    Projects,
    Publishes,
    ReadinessRows,
    RegistrySecrets,
    SessionEvents,
    Sessions,
    Store,
    Templates,
    TheDeployment,
    VariantsOf,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
AMD, ARM = Platform("linux", "amd64"), Platform("linux", "arm64", "v9")
WEB, PROJECT, NODE = ImageId("img_web"), ProjectId("prj_one"), NodeId("node_a")
FAULT = Fault(Reason.START_FAILED, "it broke", {"code": 3, "names": ["a", "b"], "nothing": None})
ALL = Page(limit=10_000)
PENDING, ACTIVE = frozenset({ReleaseState.PENDING}), frozenset({ReleaseState.ACTIVE})


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def digest(seed: str) -> str:
    return "sha256:" + seed.encode().hex().rjust(64, "0")


def variant(seed: str = "one", platform: Platform = AMD) -> Variant:
    artifacts = {
        MANIFEST_DIGEST: Artifact(digest(f"{seed}-m"), Known.COMPUTED),
        IMAGE_ID: Artifact(digest(f"{seed}-c"), Known.REPORTED),
    }
    layers = (Layer(digest(f"{seed}-l"), digest(f"{seed}-d"), 2**40, "application/vnd.oci.image.layer.v1.tar+gzip"),)
    config = ImageConfig(entrypoint=("/bin/run", "ü"), cmd=None, env=("A=1",), user="u", workdir="/w")
    return Variant(platform, artifacts, ("oci",), layers, config, 12, 34, digest(f"{seed}-i"))


def image(name: str = "web") -> Image:
    return Image(ImageId(f"img_{name}"), name, NOW, "for the web", {"tier": "gold"})


def release(number: int = 1, *variants: Variant, of: str = "web") -> Release:
    made = variants or (variant(f"{of}{number}"),)
    return Release(ReleaseId(f"rel_{of}{number}"), ImageId(f"img_{of}"), number, made, "a" * 40)


def published(it: Release, channel: str = "stable") -> tuple[Change, ...]:
    return (
        AddRelease(it, NOW, 50),
        MoveRelease(it.id, PENDING, ReleaseState.ACTIVE),
        MoveChannel(it.image, channel, it.number, None, NOW, "admin", "published"),
    )


def promotion(name: str = "one", number: int = 1, **changes: Any) -> Promotion:
    """Of web:stable, as the small installation has it."""
    made = Promotion(
        id=PromotionId(f"prm_{name}"),
        image=WEB,
        channel="stable",
        number=number,
        before=1,
        expected=1,
        nodes=2,
        deadline=later(60),
        created_at=NOW,
        principal="ann",
        why="fäster",
    )
    return replace(made, **changes)


def pool(name: str = "main", provider: str = "oci") -> Pool:
    return Pool(name, provider, AMD, SandboxSize(1.5, 2**33, 64), node_selector={"zone": "a"})


def deployment(generation: int = 1, *pools: Pool, default: ImageId | None = WEB) -> Deployment:
    return Deployment(generation, AMD, pools or (pool(),), default)


def node(name: str = "a", epoch: int = 1) -> Node:
    return Node(NodeId(f"node_{name}"), name, "oci", "runc", AMD, 4, {"zone": "a"}, epoch, NOW, warm=True)


def ready(attempt: int = 1) -> Readiness:
    return Readiness(ReadinessState.READY, wanted=True, attempt=attempt, bytes_done=2**40, bytes_total=2**40)


def held(it: Variant, on: NodeId = NODE) -> PutReadiness:
    return PutReadiness(on, 1, it.content_key, ready(), None)


def frozen(it: Release | None = None, generation: int = 1) -> FrozenRelease:
    it = it or release()
    return freeze(
        image(it.image.removeprefix("img_")),
        it,
        it.variants[0],
        reference="web",
        decided_by=DecidedBy(Level.PROJECT, "prj_one"),
        trail=(Step(Level.SESSION, Outcome.SILENT), Step(Level.PROJECT, Outcome.CHOSEN, "prj_one", "web")),
        generation=generation,
        tools={"node": "22.3.0"},
    )


TOOLS = {"node": "node --version", "jq": "jq --version"}
REPORT = ContractReport(  # noqa: S604 - whether there is one
    boots=True,
    shell=True,
    user="agent",
    uid=1000,
    gid=1000,
    home="/home/ägent",
    workdir="/workspace",
    tools={
        "node": ToolReport("node --version", "/bin/node", 0, "v22.3.0", "22.3.0"),
        "jq": ToolReport("jq --version", None, 127, "", None, Violation.NOT_FOUND),
    },
)


def promised(of: Release | None = None, *, checks: int = 1) -> SetContract:
    return SetContract((of or release()).id, Contract(TOOLS, checks))


def answered(number: int, of: Release | None = None, key: str = "web1", **changes: Any) -> AddReport:
    report = replace(REPORT, **changes)
    return AddReport((of or release()).id, content(key), NODE, Checked(number, later(number), report))


def session(number: int = 1, it: FrozenRelease | None = None, **changes: Any) -> Session:
    made = Session(
        id=SessionId(f"ses_{number}"),
        project=PROJECT,
        frozen=FrozenId(f"frz_{number}"),
        frozen_digest=(it or frozen()).document_digest,
        state=SessionState.STARTING,
        created_at=NOW,
        principal="ann",
        resources=SandboxSize(0.5, 2**30, 32),
        env={"KEY": "välue"},
        metadata={"purpose": "test"},
    )
    return replace(made, **changes)


def admitted(number: int = 1, it: FrozenRelease | None = None, **changes: Any) -> AdmitSession:
    return AdmitSession(session(number, it, **changes), it or frozen())


def reserved(
    number: int = 1, it: FrozenRelease | None = None, *, slots: int = 4, on: NodeId = NODE, again: str = ""
) -> Reserve:
    it = it or frozen()
    of = session(number, it)
    allocation = Allocation(
        AllocationId(f"alo_{number}{again}"), of.id, on, "main", SandboxSize(), of.frozen, of.frozen_digest
    )
    return Reserve(allocation, it.content_key, slots, NOW)


def preparation(**changes: Any) -> Preparation:
    """Something in every member, NUL and other letters included."""
    text = InlineFile("a/b.txt", "ü\0", 3)
    binary = InlineFile("run", "AP8=", 2, Encoding.BASE64, executable=True)
    made = Preparation(
        runtime_image_id="web:1",
        platform="linux/amd64",
        env={"A": "välue"},
        files=(text, binary),
        packages=Packages(npm=("left@1",), python=("right>=2",)),
        skills=(Skill("cook", "cooks", ("node>=20",), (InlineFile("SKILL.md", "---", 3),)),),
        plugins=(Plugin("plug", (InlineFile("plugin.json", "{}", 2),)),),
        setup_commands=(SetupCommand(("true",)), SetupCommand(None, "echo ü")),
        network=Network.ENABLED,
        requires=("git",),
    )
    return replace(made, **changes)


def template(name: str = "work", revision: int = 1, **changes: Any) -> Template:
    id_ = TemplateId(f"tmp_{name}")
    return replace(Template(id_, PROJECT, name, NOW, NOW, preparation(), revision), **changes)


def frozen_template(it: Template | None = None) -> FrozenTemplate:
    return freeze_template(it or template(), Preparation(env={"B": "2"}))


def key(name: str = "k", project: ProjectId | None = PROJECT) -> Key:
    kind = KeyKind.PROJECT if project else KeyKind.ADMINISTRATOR
    return Key(KeyId(f"key_{name}"), kind, name, f"who-{name}", digest(name), NOW, project)


def project(name: str = "one") -> Project:
    return Project(ProjectId(f"prj_{name}"), name, NOW)


def scope(name: str, parent: str | None = None, project: ProjectId | None = None, revision: int = 1) -> Scope:
    return Scope(name, NOW, parent, project, revision)


def written(revision: int = 1, **changes: Any) -> Written:
    return replace(Written("ann", NOW, "becäuse", revision), **changes)


TEAM, AGENT = Subject.of_scope("team:one"), Subject.of_agent(PROJECT, "coder")
STANDING: Sequence[Standard] = (
    Binding(DEPLOYMENT, Mode.ENFORCE, "web", written()),
    Binding(TEAM, Mode.PREFER, "web:canary", written(reason=None)),
    Binding(AGENT, Mode.PREFER, "web@sha256:00", written()),
    AllowListAt(
        Subject.of_project(PROJECT), AllowList(names=frozenset({"web"}), selectors=({"tier": "gold"},)), written()
    ),
    AllowListAt(TEAM, NOTHING, written()),
    OverrideAt(TEAM, Override.DENY, written()),
    Grant(TEAM, WEB, written()),
)
"""One row and more of each kind that can stand under a subject. The scope has to be there."""


def upload(name: str = "u", expires_at: datetime = NOW) -> Upload:
    return Upload(UploadId(f"upl_{name}"), digest(name), 2**40, expires_at)


def entry(name: str, subject: str = "img_web") -> AuditEntry:
    return AuditEntry(f"aud_{name}", NOW, "ann", "image.create", subject, details={"n": 1, "deep": {"a": [None]}})


def install(store: Store) -> None:
    """Image `web` with an active `stable` release, a deployment that defaults to it, a project, a ready node."""
    store.apply(
        AddImage(image(), 10),
        *published(release()),
        SetDeployment(deployment(), 0),
        AddProject(project()),
        PutNode(node()),
        held(release().variants[0]),
    )


def everything(store: Store) -> Sequence[object]:
    """All that the store answers."""
    keys = [store.read(Keys(p)) for p in (None, *(it.id for it in store.read(Projects())))]
    events = [store.read(SessionEvents(it.session.id)) for it in store.read(Sessions(page=ALL))]
    opened = [store.read(OpenAllocations(it.id)) for it in store.read(Nodes())]
    hidden = [store.read(SecretsOf(it.id)) for it in store.read(Projects())]
    made = [store.read(Templates(it.id, ALL)) for it in store.read(Projects())]
    queries = (
        *(TheDeployment(), Images(), VariantsOf(), Projects(), Sessions(page=ALL), Nodes(), Needs()),
        *(ReadinessRows(), DueChecks(), RegistrySecrets(), Audit(page=ALL), Publishes(page=ALL)),
        *(Scopes(page=ALL), RowsOf(Binding, page=ALL), RowsOf(AllowListAt, page=ALL)),
        *(RowsOf(OverrideAt, page=ALL), RowsOf(Grant, page=ALL)),
    )
    return [*keys, *events, *opened, *hidden, *made, *(store.read(query) for query in queries)]


def refuses(store: Store, change: Change, kind: ConflictKind, current: object = None) -> None:
    """The change, behind one that is fine, is refused with this, and neither is written."""
    before = everything(store)
    with pytest.raises(Conflict) as caught:
        store.apply(AddAudit(entry("refused")), change)
    assert (caught.value.change, caught.value.kind, caught.value.current) == (change, kind, current)
    assert everything(store) == before


def content(seed: str) -> ContentKey:
    return variant(seed).content_key
