"""What `docker login` left on this computer: in docker's `config.json`, or with the credential helper it names.

Read on the client's side only: these credentials are the user's, and the installation gets those of one registry.
"""

import base64
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from sandbay.cli.failures import CommandError

_HUB = "https://index.docker.io/v1/"
_HELPER = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HELPER_SECONDS = 30.0


def find(host: str) -> tuple[str, str]:
    """User and password for a registry. Raises `CommandError` (no_docker_login) when there are none."""
    config = _config()
    names = [_HUB, "index.docker.io", "docker.io"] if host in ("docker.io", "index.docker.io") else [host]
    for name in names:
        helper = _part(config, "credHelpers").get(name) or config.get("credsStore")
        found = _from_helper(helper, name) if helper else _from_auths(_part(config, "auths"), name)
        if found is not None:
            return found
    raise CommandError(
        "no_docker_login", f"docker knows no password for {host} here", next_step=f"Log in first: docker login {host}"
    )


def _config() -> dict[str, Any]:
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        config = json.loads((folder / "config.json").read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        raise CommandError("no_docker_login", f"{folder}/config.json cannot be read") from None
    return config if isinstance(config, dict) else {}


def _part(config: dict[str, Any], name: str) -> dict[str, Any]:
    part = config.get(name)
    return part if isinstance(part, dict) else {}


def _from_auths(auths: dict[str, Any], name: str) -> tuple[str, str] | None:
    for spelled in (name, f"https://{name}", f"http://{name}"):
        entry = auths.get(spelled)
        if isinstance(entry, dict) and isinstance(entry.get("auth"), str):
            try:
                user, colon, password = base64.b64decode(entry["auth"]).decode().partition(":")
            except ValueError:
                return None
            return (user, password.rstrip("\0")) if colon and user and password else None
    return None


def _from_helper(helper: object, name: str) -> tuple[str, str] | None:
    """Ask `docker-credential-HELPER get`. A user of `<token>` is an identity token, which is no password."""
    if not isinstance(helper, str) or not _HELPER.fullmatch(helper):
        raise CommandError("no_docker_login", "docker's configuration names a credential helper that is none")
    try:
        done = subprocess.run(
            [f"docker-credential-{helper}", "get"],
            input=name,
            capture_output=True,
            text=True,
            check=False,
            timeout=_HELPER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise CommandError("no_docker_login", f"docker-credential-{helper} does not answer") from None
    try:
        said = json.loads(done.stdout)
        user, password = said["Username"], said["Secret"]
    except (ValueError, LookupError, TypeError):
        return None
    return (user, password) if done.returncode == 0 and user != "<token>" else None
