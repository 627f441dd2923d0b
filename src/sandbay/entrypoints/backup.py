"""A whole installation in one file and back: the database, the blobs of its releases, and its keys.

The file is a zip, not compressed: blobs are. It holds the key that opens the installation's secrets, so it is its
owner's alone. The database is copied first; blobs that it names are never altered, whatever is written meanwhile.

What is left out can be made again (what nodes hold, builds, uploads) or is this host's own (its context file).
"""

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, BinaryIO

from sandbay.adapters.store import dump
from sandbay.adapters.store.database import locate
from sandbay.adapters.vault.key_file import KeyFileVault
from sandbay.app.registries import credentials_for
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.digest import verified
from sandbay.engine.durable import room, write_file
from sandbay.engine.registry.pace import Pace
from sandbay.entrypoints.blobs import open_blobs
from sandbay.entrypoints.identities import identities
from sandbay.entrypoints.lock import InstallationLock
from sandbay.entrypoints.settings import Settings
from sandbay.ports.blobs import Blobs
from sandbay.ports.store import Images, Store

FORMAT = 1
_HEAD, _DATABASE, _KEYS = "backup.json", "database", ("identity.json", "secrets.key")
_CHUNK = 1 << 20
_SMALL = 1 << 24

Told = Callable[[int, int], None]
"""Hears how many bytes of blobs are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a backup has: whose it is, and how many blobs with how many bytes."""

    installation: str
    blobs: int
    bytes: int


def backup(settings: Settings, file: Path, told: Told = lambda *_: None) -> Kept:
    """Write it, whole or not at all; the installation may be serving meanwhile.

    Refuses with `in_use` where the file is there, with `not_found` where there is no installation, with `blob_missing`,
    `digest_mismatch` and `size_mismatch` where that is not whole itself, with `no_space`, and as `dump.dump`.
    """
    if file.exists():
        raise RefusedError(Reason.IN_USE, f"{file} is there already; choose another name")
    if not (settings.home / _KEYS[0]).exists():
        raise RefusedError(Reason.NOT_FOUND, f"there is no installation in {settings.home}")
    installation, where = identities(settings.home).installation, _database(settings)
    with ExitStack() as using, _new(file) as target:
        folder = Path(using.enter_context(tempfile.TemporaryDirectory(prefix=".backup-", dir=file.absolute().parent)))
        dump.dump(where, folder / _DATABASE)
        store = using.enter_context(dump.reading(folder / _DATABASE if isinstance(where, Path) else where))
        blobs, needed = _blobs(settings, store, using), _needed(store)
        head = {
            "format": FORMAT,
            "schema": dump.newest(),
            "database": dump.kind_of(where),
            "installation": installation,
        }
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_HEAD, json.dumps({**head, "at": datetime.now(UTC).isoformat(), "blobs": needed}))
            for name in _KEYS:
                archive.write(settings.home / name, name)
            archive.write(folder / _DATABASE, _DATABASE)
            _take_blobs(blobs, needed, archive, told)
    return Kept(installation, len(needed), sum(needed.values()))


def restore(settings: Settings, file: Path, told: Told = lambda *_: None) -> Kept:
    """Make an installation of a backup where there is none. Its database comes last: cut short, it may be repeated.

    Refuses with `in_use` where there is one, with `malformed_archive` what is no whole backup of this kind of database,
    with `host_unfit` one of a later version, with `no_space`, and as `dump.load`. Every blob is verified.
    """
    where = _database(settings)
    with ExitStack() as using, room():
        archive = using.enter_context(_opened(file))
        head = _head(archive, where)
        settings.home.mkdir(mode=0o711, parents=True, exist_ok=True)
        lock = InstallationLock(settings.lock).take()
        if lock is None or not dump.is_empty(where):
            raise RefusedError(Reason.IN_USE, f"{settings.home} or its database has an installation already")
        using.callback(lock.release)
        folder = Path(using.enter_context(tempfile.TemporaryDirectory(prefix=".restore-", dir=settings.home)))
        database = Path(archive.extract(_DATABASE, folder))
        for name in _KEYS:
            _put_key(settings.home / name, archive.read(name))
        needed: Mapping[str, int] = head["blobs"]
        _put_blobs(_blobs(settings, None, using), needed, archive, told)
        dump.load(database, where)
    return Kept(head["installation"], len(needed), sum(needed.values()))


def _database(settings: Settings) -> dump.Database:
    return locate(settings.database_url) if settings.database_url else settings.database


def _blobs(settings: Settings, store: Store | None, using: ExitStack) -> Blobs:
    vault = KeyFileVault(settings.key)
    return open_blobs(settings, lambda host: credentials_for(store, vault, host) if store else None, Pace(), using)


def _needed(store: Store) -> dict[str, int]:
    """Every blob of every release that is not without bytes of ours, and its size."""
    releases = (held.release for entry in store.read(Images()) for held in entry.releases.values())
    return {digest: size for release in releases for variant in release.variants for digest, size in variant.blobs}


@contextmanager
def _new(file: Path) -> Iterator[BinaryIO]:
    """A file that only its owner reads, under its name when the block has come to its end."""
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RefusedError(Reason.PATH_INVALID, f"{file} cannot be written: {error.strerror}") from error
    try:
        with room(), os.fdopen(descriptor, "w+b") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _take_blobs(blobs: Blobs, needed: Mapping[str, int], archive: zipfile.ZipFile, told: Told) -> None:
    done, total = 0, sum(needed.values())
    told(done, total)
    for digest, size in needed.items():
        with blobs.open(digest) as source, archive.open(_member(digest, size), "w", force_zip64=True) as target:
            for chunk in verified(_chunks(source), digest, size):
                target.write(chunk)
                done += len(chunk)
                told(done, total)


def _put_blobs(blobs: Blobs, needed: Mapping[str, int], archive: zipfile.ZipFile, told: Told) -> None:
    done, total = 0, sum(needed.values())

    def counted(source: IO[bytes]) -> Iterator[bytes]:
        nonlocal done
        for chunk in _chunks(source):
            yield chunk
            done += len(chunk)
            told(done, total)

    for digest, size in needed.items():
        with archive.open(_name(digest)) as source:
            blobs.put(digest, size, counted(source))


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def _name(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _member(digest: str, size: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(_name(digest))
    member.file_size = size
    return member


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    """To be read. What is no zip, or a damaged one, is named whenever that is seen."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except FileNotFoundError:
        raise RefusedError(Reason.NOT_FOUND, f"there is no file {file}") from None
    except (zipfile.BadZipFile, EOFError, KeyError, NotImplementedError) as error:
        raise _malformed(f"{file.name} is no whole backup: {error}") from error


def _head(archive: zipfile.ZipFile, where: dump.Database) -> dict[str, Any]:
    if any(archive.getinfo(name).file_size > _SMALL for name in (_HEAD, *_KEYS)):
        raise _malformed("its head is larger than any that was written")
    try:
        head = json.loads(archive.read(_HEAD))
        fits = head["format"] == FORMAT and dump.is_known(head["schema"])
        installation, kind, blobs = head["installation"], head["database"], head["blobs"]
        sound = isinstance(installation, str) and all(isinstance(size, int) for size in blobs.values())
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _malformed("its head is none that was written") from error
    if not fits:
        raise RefusedError(Reason.HOST_UNFIT, "the backup is a later version's; restore it with that one")
    if not sound or kind != dump.kind_of(where):
        raise _malformed(
            f"it holds a database of {kind}, and this installation is to have one of {dump.kind_of(where)}"
        )
    return {"installation": installation, "blobs": blobs}


def _put_key(path: Path, data: bytes) -> None:
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with _masked():
        write_file(path, data, part)


@contextmanager
def _masked() -> Iterator[None]:
    """What is made in the block is its owner's alone from the first moment."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _malformed(message: str) -> RefusedError:
    return RefusedError(Reason.MALFORMED_ARCHIVE, message)
