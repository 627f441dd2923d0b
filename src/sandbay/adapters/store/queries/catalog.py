"""Images with releases and channels; variants by content."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, or_, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun, variant_of
from sandbay.adapters.store.tables import (
    channels,
    contract_reports,
    contracts,
    images,
    release_states,
    releases,
    variants,
)
from sandbay.domain.catalog import CatalogView, Channel, Image, ImageEntry, ReleaseEntry
from sandbay.domain.contract import Checked, Contract
from sandbay.domain.ids import ImageId
from sandbay.domain.release import ContentKey, Release, ReleaseState, ReleaseStatus, Variant
from sandbay.ports.records import KnownVariant
from sandbay.ports.store import CatalogOf, Images, VariantsOf


def _among(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    return column.in_(bindparam(name, expanding=True))


_MEANT = or_(
    _among(images.c.name, "names"),
    _among(images.c.id, "names"),
    images.c.id.in_(select(releases.c.image).where(_among(releases.c.id, "releases"))),
)

_STATUS = columns_of(ReleaseStatus, release_states)
_FIND = select(images.c.id).where(_MEANT)
_IMAGES = select(*columns_of(Image, images)).order_by(images.c.name)
_CHANNELS = select(*columns_of(Channel, channels)).order_by(channels.c.image, channels.c.name)
_RELEASES = (
    select(releases.c.id, releases.c.image, releases.c.number, releases.c.source_commit, *_STATUS)
    .select_from(releases)
    .join(release_states, release_states.c.release == releases.c.id)
    .order_by(releases.c.image, releases.c.number)
)
_VARIANTS = (
    select(variants.c.release, variants.c.document)
    .select_from(variants)
    .join(releases, releases.c.id == variants.c.release)
    .order_by(variants.c.release, variants.c.position)
)
_REPORT = columns_of(Checked, contract_reports)
_CONTRACTS = (
    select(*columns_of(Contract, contracts), contracts.c.release, contract_reports.c.content_key, *_REPORT)
    .select_from(contracts)
    .join(releases, releases.c.id == contracts.c.release)
    .outerjoin(contract_reports, contract_reports.c.release == contracts.c.release)
    .order_by(contracts.c.release, contract_reports.c.number)
)
_ALL = (_IMAGES, _RELEASES, _VARIANTS, _CHANNELS, _CONTRACTS)
_SOME = (
    _IMAGES.where(_among(images.c.id, "ids")),
    _RELEASES.where(_among(releases.c.image, "ids")),
    _VARIANTS.where(_among(releases.c.image, "ids")),
    _CHANNELS.where(_among(channels.c.image, "ids")),
    _CONTRACTS.where(_among(releases.c.image, "ids")),
)


def _catalog_of(connection: Connection, query: CatalogOf) -> CatalogView:
    meant = {"names": sorted(query.names), "releases": sorted(query.releases)}
    ids = connection.execute(_FIND, meant).scalars().all()
    return CatalogView(_entries(connection, ids) if ids else ())


def _images(connection: Connection, _: Images) -> Sequence[ImageEntry]:
    return _entries(connection, None)


def _entries(connection: Connection, ids: Sequence[str] | None) -> tuple[ImageEntry, ...]:
    """By name; all when `ids` is None."""
    statements, values = (_ALL, None) if ids is None else (_SOME, {"ids": ids})
    found = [connection.execute(statement, values).all() for statement in statements]
    channels_by: dict[ImageId, dict[str, Channel]] = defaultdict(dict)
    for row in found[3]:
        channel = noun(Channel, row)
        channels_by[channel.image][channel.name] = channel
    releases_by = _releases_by_image(found[1], found[2], found[4])
    entries = (noun(Image, row) for row in found[0])
    return tuple(ImageEntry(image, releases_by.get(image.id, {}), channels_by.get(image.id, {})) for image in entries)


def _releases_by_image(
    release_rows: Sequence[Sequence[Any]],
    variant_rows: Sequence[Sequence[Any]],
    contract_rows: Sequence[Sequence[Any]],
) -> dict[ImageId, dict[int, ReleaseEntry]]:
    variants_by: dict[str, list[Variant]] = defaultdict(list)
    for release, document in variant_rows:
        variants_by[release].append(variant_of(document))
    contracts_by: dict[str, Contract] = {}
    checked_by: dict[str, dict[ContentKey, Checked]] = defaultdict(dict)
    for row in contract_rows:
        release, key = row[2:4]
        contracts_by[release] = noun(Contract, row)
        if key is not None:
            checked_by[release][key] = noun(Checked, row, 4)  # in the order of checks: the newest stays
    by_image: dict[ImageId, dict[int, ReleaseEntry]] = defaultdict(dict)
    for row in release_rows:
        id_, image, number, source_commit = row[:4]
        by_image[image][number] = ReleaseEntry(
            Release(id_, image, number, tuple(variants_by[id_]), source_commit),
            noun(ReleaseStatus, row, 4),
            contracts_by.get(id_, Contract()),
            checked_by.get(id_, {}),
        )
    return by_image


_KNOWN = (
    select(
        *(releases.c.image, images.c.name, variants.c.release, releases.c.number, release_states.c.state),
        variants.c.document,
    )
    .select_from(variants)
    .join(releases, releases.c.id == variants.c.release)
    .join(images, images.c.id == releases.c.image)
    .join(release_states, release_states.c.release == releases.c.id)
    .order_by(images.c.name, releases.c.number, variants.c.position)
)
_KNOWN_BY_KEY = _KNOWN.where(_among(variants.c.content_key, "keys"))
_KNOWN_USABLE = _KNOWN.where(release_states.c.state != ReleaseState.REJECTED)


def _variants_of(connection: Connection, query: VariantsOf) -> Sequence[KnownVariant]:
    if query.keys is None:
        rows = connection.execute(_KNOWN_USABLE)
    else:
        rows = connection.execute(_KNOWN_BY_KEY, {"keys": sorted(query.keys)})
    return tuple(KnownVariant(*row[:5], variant_of(row[5])) for row in rows)


ANSWERS: Answers = {CatalogOf: _catalog_of, Images: _images, VariantsOf: _variants_of}
