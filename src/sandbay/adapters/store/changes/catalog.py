"""Images and releases."""

from sqlalchemy import Connection, bindparam, func, insert, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import (
    move,
    refuse_beyond,
    refuse_taken,
    refuse_unless,
    replace_next,
    value_there,
)
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import (
    channels,
    contracts,
    images,
    release_states,
    releases,
    variants,
)
from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.release import Release, ReleaseState, ReleaseStatus
from sandbay.ports.changes import AddImage, AddRelease, ChangeImage, Conflict, ConflictKind, MoveRelease

_IMAGE_BY_NAME = select(images.c.id).where(images.c.name == bindparam("name"))
_IMAGE_COUNT = select(func.count()).select_from(images)
_IMAGE_REVISION = select(images.c.revision).where(images.c.id == bindparam("id"))
_UPDATE_IMAGE = (
    update(images)
    .where(images.c.id == bindparam("key"))
    .values({name: bindparam(name) for name in ("description", "labels", "state", "revision", "tier")})
)


def _add_image(connection: Connection, change: AddImage) -> None:
    values = values_of(change.image)
    refuse_taken(connection, _IMAGE_BY_NAME, {"name": change.image.name}, change)
    refuse_beyond(change.limit, connection.execute(_IMAGE_COUNT).scalar_one(), change)
    connection.execute(insert(images), values)


def _change_image(connection: Connection, change: ChangeImage) -> None:
    image = change.image
    values = {
        "id": image.id,
        "key": image.id,
        "revision": image.revision,
        "description": image.description,
        "labels": image.labels,
        "state": image.state,
        "tier": image.tier,
    }
    replace_next(connection, _IMAGE_REVISION, _UPDATE_IMAGE, values, change)


_SAME_CONTENT = select(releases.c.id).where(
    releases.c.image == bindparam("image"), releases.c.content == bindparam("content")
)
_LAST_NUMBER = select(func.coalesce(func.max(releases.c.number), 0)).where(releases.c.image == bindparam("image"))
_RELEASE_COUNT = select(func.count()).select_from(releases).where(releases.c.image == bindparam("image"))
_RELEASE_STATE = select(release_states.c.state).where(release_states.c.release == bindparam("key"))
_MOVE_RELEASE = (
    update(release_states)
    .where(release_states.c.release == bindparam("key"))
    .values(state=bindparam("to"), fault=bindparam("fault"), revision=release_states.c.revision + 1)
)
_NO_TARGET = frozenset({ReleaseState.RETIRED, ReleaseState.REJECTED})
_POINTING = (
    select(channels.c.name)
    .join(releases, (releases.c.image == channels.c.image) & (releases.c.number == channels.c.number))
    .where(releases.c.id == bindparam("key"))
    .order_by(channels.c.name)
    .limit(1)
)


def _content(release: Release) -> str:
    """One name for a set of content keys."""
    return sha256(canonical(sorted(variant.content_key for variant in release.variants)))


def _add_release(connection: Connection, change: AddRelease) -> None:
    release = change.release
    of = {"image": release.image, "content": _content(release)}
    value_there(connection, _IMAGE_REVISION, {"id": release.image}, change)
    refuse_taken(connection, _SAME_CONTENT, of, change)
    last = connection.execute(_LAST_NUMBER, of).scalar_one()
    refuse_unless(release.number == last + 1, last, change)
    refuse_beyond(change.limit, connection.execute(_RELEASE_COUNT, of).scalar_one(), change)
    row = {"id": release.id, "number": release.number, "source_commit": release.source_commit}
    connection.execute(insert(releases), {**of, **row, "created_at": change.created_at})
    connection.execute(insert(variants), _variant_rows(release))
    connection.execute(
        insert(release_states), {"release": release.id, **values_of(ReleaseStatus(promote=change.promote))}
    )
    if change.contract.checks:
        connection.execute(insert(contracts), {"release": release.id, **values_of(change.contract)})


def _variant_rows(release: Release) -> list[dict[str, object]]:
    return [
        {
            "release": release.id,
            "position": position,
            "platform": str(variant.platform),
            "content_key": variant.content_key,
            "document": canonical(variant).decode(),
        }
        for position, variant in enumerate(release.variants)
    ]


def _move_release(connection: Connection, change: MoveRelease) -> None:
    pointing = connection.execute(_POINTING, {"key": change.release}).scalar() if change.to in _NO_TARGET else None
    if pointing is not None:
        raise Conflict(change, ConflictKind.IN_USE, pointing)
    values = {"key": change.release, "to": change.to, "fault": change.fault}
    move(connection, _RELEASE_STATE, _MOVE_RELEASE, values, change)


WRITES: Writes = {
    AddImage: _add_image,
    AddRelease: _add_release,
    ChangeImage: _change_image,
    MoveRelease: _move_release,
}
