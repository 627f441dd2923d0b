"""RESOLVE: who chooses, at five levels: 1,000 images and 100,000 bindings stored, against what the path names alone."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from bench.figures import Figure, Target, ratio
from bench.rounds import interleaved
from sandbay.adapters.store.migrate import migrate
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.app.core import Core
from sandbay.app.select import Wish, select
from sandbay.domain.binding import Binding, Mode, Written
from sandbay.domain.catalog import Image
from sandbay.domain.deployment import Deployment, Pool
from sandbay.domain.ids import ImageId, ProjectId, ReleaseId
from sandbay.domain.path import DEPLOYMENT, Subject
from sandbay.domain.platform import Platform
from sandbay.domain.project import Project
from sandbay.domain.release import IMAGE_ID, MANIFEST_DIGEST, Artifact, Known, Release, ReleaseState, Variant
from sandbay.domain.scope import Scope
from sandbay.flow.locate import Whereabouts
from sandbay.ports.changes import AddImage, AddProject, AddRelease, Change, MoveChannel, MoveRelease, SetDeployment
from sandbay.ports.standing import PutScope, PutStanding

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_WRITTEN = Written("bench", _NOW)
_HERE = Platform.of("linux", "amd64")
_PROJECT = ProjectId("prj_00000000000000000000")
_PATH = ("org:o", "team:t", "room:r")
_IMAGES, _BINDINGS, _AT_ONCE = 1_000, 100_000, 2_000
_TIMES = 200
"""Selections of one measurement: one alone is too short to be told from noise."""


def measure(rounds: int = 15) -> Iterator[Figure]:
    """Load and decide: agent, three scopes, project and deployment speak, and a wish is held against one of them."""
    with ExitStack() as stack:
        crowded = stack.enter_context(closing(_store(Path(stack.enter_context(tempfile.TemporaryDirectory())))))
        alone = stack.enter_context(closing(_store(Path(stack.enter_context(tempfile.TemporaryDirectory())))))
        _fill(crowded)
        took = interleaved(rounds, {"crowded": lambda: _selected(crowded), "alone": lambda: _selected(alone)})
    yield Figure(
        bench="RESOLVE",
        what="load and decide at 5 levels, 1,000 images and 100,000 bindings stored",
        target=Target(must=1.5, aim=1.1),
        value=ratio(took["crowded"], took["alone"]),
        ours=_micro(took["crowded"]),
        theirs=_micro(took["alone"]),
        command="the same selection where one image, and the bindings of its path, are all there is",
    )


def _selected(store: SqliteStore) -> float:
    """Seconds of one selection."""
    core = cast("Core", SimpleNamespace(store=store))  # selecting needs the store alone
    wish = Wish("web", whereabouts=Whereabouts(_PATH[-1], "coder"))
    begun = time.perf_counter()
    for _ in range(_TIMES):
        select(core, _PROJECT, wish).frozen()
    return (time.perf_counter() - begun) / _TIMES


def _micro(seconds: Sequence[float]) -> str:
    return f"{sorted(seconds)[len(seconds) // 2] * 1e6:.0f} µs"


def _store(folder: Path) -> SqliteStore:
    """One image, and one path with a binding at each level."""
    migrate(folder / "db")
    store = SqliteStore(folder / "db")
    store.apply(AddProject(Project(_PROJECT, "growth", _NOW)), *_image(0, "web"))
    pool = Pool("main", "oci", _HERE)
    store.apply(SetDeployment(Deployment(1, _HERE, (pool,), _image_id(0)), 0))
    parents = (None, *_PATH)
    store.apply(*(PutScope(Scope(*it, revision=1)) for it in zip(_PATH, [_NOW] * 3, parents, strict=False)))
    subjects = (Subject.of_agent(_PROJECT, "coder"), *map(Subject.of_scope, _PATH), Subject.of_project(_PROJECT))
    store.apply(PutStanding(Binding(DEPLOYMENT, Mode.ENFORCE, "web", _WRITTEN)))
    store.apply(*(PutStanding(Binding(it, Mode.PREFER, "web:1", _WRITTEN)) for it in subjects))
    return store


def _fill(store: SqliteStore) -> None:
    """With what no word on the path names."""
    for number in range(1, _IMAGES):
        store.apply(*_image(number, f"image-{number}"))
    agents = [Subject.of_agent(_PROJECT, f"agent-{number}") for number in range(_BINDINGS)]
    for first in range(0, _BINDINGS, _AT_ONCE):
        some = agents[first : first + _AT_ONCE]
        names = (f"image-{1 + number % (_IMAGES - 1)}" for number in range(first, first + len(some)))
        rows = (Binding(it, Mode.PREFER, name, _WRITTEN) for it, name in zip(some, names, strict=True))
        store.apply(*map(PutStanding, rows))


def _image_id(number: int) -> ImageId:
    return ImageId(f"img_{number:020d}")


def _image(number: int, name: str) -> Sequence[Change]:
    """With one release that `stable` points at."""
    image, release = _image_id(number), ReleaseId(f"rel_{number:020d}")
    names = (MANIFEST_DIGEST, IMAGE_ID)
    artifacts = {it: Artifact(f"sha256:{number:063x}{place}", Known.COMPUTED) for place, it in enumerate(names)}
    return (
        AddImage(Image(image, name, _NOW), _IMAGES),
        AddRelease(Release(release, image, 1, (Variant(_HERE, artifacts, ("oci",)),)), _NOW, 50),
        MoveRelease(release, frozenset({ReleaseState.PENDING}), ReleaseState.ACTIVE),
        MoveChannel(image, "stable", 1, None, _NOW, "bench", ""),
    )
