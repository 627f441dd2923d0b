"""A whole installation in one file, made again on another machine: the same images, history and secrets."""

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL

from sandbay.entrypoints import backup as keeping
from sandbay.entrypoints.settings import Settings
from tests.e2e.installation import Done, Installation
from tests.support.postgres import LOCKED, PASSWORD, Server

pytestmark = [pytest.mark.real, pytest.mark.slow]
SECRET = "hush-of-a-registry"  # noqa: S105 - of no registry


@pytest.fixture
def there() -> Iterator[Installation]:
    """Another machine: a home, a run folder and a port of its own, and nothing in them yet."""
    it = Installation()
    yield it
    it.close()


def _filled(house: Installation) -> str:
    """Two images, a secret, and a Session that runs; its id."""
    for name in ("plain", "web"):
        assert house.register(name, house.image(name)).code == 0
    login = ("registries", "login", "r.example", "-u", "me", "--password-stdin")
    house.ok(*login, stdin=SECRET.encode())
    session: str = house.ok("sessions", "create", "--image", "web", "--json").data["id"]
    return session


def _same(there: Installation, session: str) -> None:
    """What was there is here, and the image is still the one that it was."""
    assert there.ok("run", "web", "--", "cat", "/which").out == "web\n"
    assert there.ok("run", "plain", "--", "cat", "/which").out == "plain\n"
    assert [it["registry"] for it in there.ok("registries", "ls", "--json").data["items"]] == ["r.example"]
    there.eventually(lambda: there.ok("sessions", "get", session, "-q").out == "failed\n")
    lost = there.ok("sessions", "get", session, "--json").data
    assert (lost["reason"]["code"], lost["image"]["name"], lost["image"]["release"]) == ("node_lost", "web", 1)
    assert there.ok("images", "verify", "--json").data["seen"] == "whole"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A backup of an installation that serves, and its Session, which lives on."""
    file = tmp_path_factory.mktemp("backup") / "kept.sandbay"
    house = Installation()
    try:
        house.up()
        session = _filled(house)
        done = house.ok("backup", str(file), "--json")
        assert done.data["blobs"] == len(list((house.home / "blobs" / "sha256").iterdir()))
        assert house.ok("sessions", "exec", session, "--", "cat", "/which").out == "web\n"
        assert house.cli("backup", str(file), "--json").refusal["code"] == "in_use", "nothing is written over"
        house.ok("sessions", "rm", session)
        yield file, session
    finally:
        house.close()


def test_it_is_made_again_on_another_machine(kept: tuple[Path, str], there: Installation) -> None:
    file, session = kept
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]
    there.ok("restore", str(file))
    assert (there.home / "secrets.key").stat().st_mode & 0o777 == 0o600
    assert there.cli("restore", str(file), "--json").refusal["code"] == "in_use", "not into an installation"
    there.up()
    assert there.cli("restore", str(file), "--json").refusal["code"] == "in_use", "least of all one that serves"
    _same(there, session)
    lines = there.ok("audit", "--export").out
    (there.root / "audit").write_text(lines)
    there.ok("audit", "verify", str(there.root / "audit"))


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _flipped(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        largest = max(archive.infolist(), key=lambda it: it.file_size)
    with file.open("r+b") as data:
        data.seek(largest.header_offset + largest.file_size // 2)
        byte = data.read(1)
        data.seek(-1, os.SEEK_CUR)
        data.write(bytes([byte[0] ^ 1]))


def _other(file: Path) -> None:
    file.write_bytes(b"no zip")


def _altered(**said: object) -> Callable[[Path], None]:
    """Another head, all else as it was."""

    def alter(file: Path) -> None:
        shutil.copy(file, was := file.with_suffix(".was"))
        with zipfile.ZipFile(was) as source, zipfile.ZipFile(file, "w") as target:
            for member in source.infolist():
                data = source.read(member)
                if member.filename == "backup.json":
                    data = json.dumps({**json.loads(data), **said}).encode()
                target.writestr(member.filename, data)

    return alter


@pytest.mark.parametrize(
    "damage, code",
    [
        (_cut, "malformed_archive"),
        (_flipped, "malformed_archive"),
        (_other, "malformed_archive"),
        (Path.unlink, "not_found"),
        (_altered(format=2), "host_unfit"),
        (_altered(schema="9999"), "host_unfit"),
        (_altered(database="postgresql"), "malformed_archive"),
        (_altered(blobs={"sha256:" + "0" * 64: 3}), "malformed_archive"),
        (_altered(blobs=[]), "malformed_archive"),
    ],
)
def test_what_is_no_whole_backup_makes_no_installation(
    kept: tuple[Path, str], there: Installation, damage: Callable[[Path], None], code: str
) -> None:
    file = there.root / "damaged"
    shutil.copy(kept[0], file)
    damage(file)
    refused = there.cli("restore", str(file), "--json")
    assert (refused.code, refused.refusal["code"]) == (125, code)
    assert not (there.home / "sandbay.db").exists()
    assert "Traceback" not in there.cli("restore", str(file)).err
    there.ok("restore", str(kept[0]))


class CutError(Exception):
    """Where kill -9 struck."""


def test_one_that_was_cut_short_is_repeated(kept: tuple[Path, str], there: Installation) -> None:
    file, session = kept
    where, seen = Settings(there.home, there.run), []

    def cut(done: int, total: int) -> None:
        seen.append(done)
        if done > total // 2:
            raise CutError

    with pytest.raises(CutError):
        keeping.restore(where, file, cut)
    assert seen
    assert not where.database.exists(), "there is no half an installation"
    there.ok("restore", str(file))
    there.up()
    _same(there, session)
    again = there.root / "again"
    with pytest.raises(CutError):
        keeping.backup(where, again, cut)
    assert {path.name for path in there.root.iterdir()} == {"home", "run", "layouts"}, "nor half a file"
    there.ok("backup", str(again))


def test_a_damaged_installation_is_not_backed_up_as_if_it_were_whole(
    kept: tuple[Path, str], there: Installation
) -> None:
    there.ok("restore", str(kept[0]))
    blob = max((there.home / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)
    blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    file = there.root / "file"
    assert _code(there.cli("backup", str(file), "--json")) == "digest_mismatch"
    blob.unlink()
    assert _code(there.cli("backup", str(file), "--json")) == "blob_missing"
    assert not file.exists()


def test_without_an_installation_there_is_nothing_to_keep(there: Installation) -> None:
    assert _code(there.cli("backup", str(there.root / "file"), "--json")) == "not_found"


def _code(done: Done) -> str:
    assert done.code == 125, done
    code: str = done.refusal["code"]
    return code


@pytest.fixture
def databases(postgres: Server) -> Iterator[list[URL]]:
    made = [postgres.database(migrated=False) for _ in range(2)]
    yield [postgres.url(it.database or "", LOCKED, PASSWORD) for it in made]
    for it in made:
        postgres.drop(it)


def test_with_postgresql(there: Installation, databases: list[URL], tmp_path: Path) -> None:
    first, second = (url.render_as_string(hide_password=False) for url in databases)
    file, house = tmp_path / "file", Installation()
    try:
        house.up("--database", first)
        session = _filled(house)
        house.ok("backup", str(file), "--database", first)
        house.ok("sessions", "rm", session)
        refused = there.cli("restore", str(file), "--database", first, "--json")
        assert refused.refusal["code"] == "in_use", "this database has an installation"
        assert PASSWORD not in refused.err
        there.ok("restore", str(file), "--database", second)
        there.up("--database", second)
        _same(there, session)
    finally:
        house.close()
