"""The context file: address and keys for the command line on this host, readable by its owner only."""

import json
import os
import pwd
from pathlib import Path

from sandbay.app.access import authenticate
from sandbay.app.core import Core
from sandbay.app.installation import local_keys
from sandbay.domain.errors import RefusedError
from sandbay.domain.project import KeyKind
from sandbay.entrypoints.settings import Settings


def write_context(core: Core, settings: Settings) -> None:
    """Keep keys that still work, mint new ones otherwise; through sudo, that user gets a copy."""
    known = _read(settings.context)
    admin, key = known.get("admin_key", ""), known.get("api_key", "")
    if not (_works(core, admin, KeyKind.ADMINISTRATOR) and _works(core, key, KeyKind.PROJECT)):
        admin, key = local_keys(core)
    text = json.dumps({"url": settings.url, "api_key": key, "admin_key": admin}, indent=1) + "\n"
    _write(settings.context, text, None)
    user = os.environ.get("SUDO_USER")
    if user and user != "root":
        person = pwd.getpwnam(user)
        _write(Path(person.pw_dir) / ".config" / "sandbay" / "context.json", text, person)


def _read(path: Path) -> dict[str, str]:
    try:
        data = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _works(core: Core, secret: str, kind: KeyKind) -> bool:
    try:
        authenticate(core, secret, kind)
    except RefusedError:
        return False
    return True


def _write(path: Path, text: str, owner: pwd.struct_passwd | None) -> None:
    """Write as the owner would: never through a link that the owner planted for root to follow."""
    if owner is not None:
        _write_as(path, text, owner)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)
    part.replace(path)


def _write_as(path: Path, text: str, owner: pwd.struct_passwd) -> None:
    """Root's file access must not follow what the user laid out: become the user for this one write."""
    os.setegid(owner.pw_gid)
    os.seteuid(owner.pw_uid)
    try:
        _write(path, text, None)
    finally:
        os.seteuid(0)
        os.setegid(0)
