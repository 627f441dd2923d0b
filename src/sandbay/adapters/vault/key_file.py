"""Secrets sealed with AES-256-GCM under a key in a file that only its owner can read."""

import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.durable import place

_VERSION = "1."
_KEY_BYTES, _NONCE_BYTES = 32, 12
_MODE = 0o600


class KeyFileVault:
    """The port `vault`. The file is made when it is missing; without it, what was sealed is lost."""

    def __init__(self, path: Path) -> None:
        """Read the key, or make it durable. Refuses with `host_unfit` a file that is no key of ours."""
        if not path.exists():
            _make(path)
        path.chmod(_MODE)
        key = path.read_bytes()
        if len(key) != _KEY_BYTES:
            raise RefusedError(Reason.HOST_UNFIT, f"{path.name} is no key of an installation")
        self._cipher = AESGCM(key)

    def seal(self, secret: bytes, context: str) -> str:
        """Text that may be stored; another one every time."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _VERSION + urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, secret, context.encode())).decode()

    def unseal(self, sealed: str, context: str) -> bytes:
        """The secret again."""
        try:
            data = urlsafe_b64decode(sealed.removeprefix(_VERSION))
            return self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], context.encode())
        except (ValueError, InvalidTag):
            message = "a stored secret was sealed with another key; put it again"
            raise RefusedError(Reason.HOST_UNFIT, message) from None


def _make(path: Path) -> None:
    part = path.with_name(path.name + ".part")
    with suppress(FileNotFoundError):
        part.unlink()
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    with os.fdopen(fd, "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    place(part, path)
