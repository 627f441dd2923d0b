"""Secrets at rest: sealed under a key that nobody else can read."""

import stat
from pathlib import Path

import pytest

from sandbay.adapters.vault.key_file import KeyFileVault
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.registry import Credentials, RegistrySecret
from tests.contracts.store_things import NOW


def test_it_opens_again_also_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "key"
    sealed = [KeyFileVault(path).seal(b"secret", "registry:a") for _ in range(2)]
    assert len(set(sealed)) == 2
    assert all("secret" not in each for each in sealed)
    assert [KeyFileVault(path).unseal(each, "registry:a") for each in sealed] == [b"secret"] * 2


def test_the_key_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    KeyFileVault(path)
    path.chmod(0o644)
    KeyFileVault(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_crash_left_of_a_key_is_none(tmp_path: Path) -> None:
    (tmp_path / "key.part").write_bytes(b"half")
    KeyFileVault(tmp_path / "key").seal(b"x", "y")
    (tmp_path / "key").write_bytes(b"half")
    with pytest.raises(RefusedError) as caught:
        KeyFileVault(tmp_path / "key")
    assert caught.value.refusal.reason is Reason.HOST_UNFIT


def test_it_opens_with_nothing_else(tmp_path: Path) -> None:
    vault = KeyFileVault(tmp_path / "key")
    sealed = vault.seal(b"secret", "registry:a")
    other = KeyFileVault(tmp_path / "other")
    flipped = sealed[:-5] + ("A" if sealed[-5] != "A" else "B") + sealed[-4:]
    for which, text, context in [
        (vault, sealed, "registry:b"),
        (other, sealed, "registry:a"),
        *((vault, text, "registry:a") for text in ("", "1.", "1.?", flipped, sealed[:20])),
    ]:
        with pytest.raises(RefusedError) as caught:
            which.unseal(text, context)
        assert caught.value.refusal.reason is Reason.HOST_UNFIT


def test_neither_shows_itself() -> None:
    assert "fx" not in repr(Credentials("fx", "fx"))
    assert "fx" not in repr(RegistrySecret("a", "fx", NOW))
