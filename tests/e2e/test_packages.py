"""Packages of a Template with the example images' own npm and pip, without any network: they come as files."""

import base64
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.installation import Installation

pytestmark = [pytest.mark.real, pytest.mark.slow]


def wheel(name: str) -> bytes:
    """A package with a module and a command, as pip takes it."""
    out = io.BytesIO()
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(f"{name}.py", "def main():\n    print('hello from the wheel')\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {name}:main\n")
        archive.writestr(f"{info}/RECORD", "")
    return out.getvalue()


def tarball(name: str) -> bytes:
    """A package with a command, as npm takes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in {
            "package.json": json.dumps({"name": name, "version": "1.0.0", "bin": {name: "cli.js"}}),
            "cli.js": "#!/usr/bin/env node\nconsole.log('hello from the tarball')\n",
        }.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def inline(path: str, data: bytes) -> dict[str, Any]:
    return {"path": path, "encoding": "base64", "content": base64.b64encode(data).decode()}


def said_by(house: Installation, name: str, template: dict[str, Any], command: str) -> str:
    document = json.dumps({"name": name, "setup_network": "disabled", **template}).encode()
    house.ok("templates", "create", "-", stdin=document)
    session = house.ok("sessions", "create", "--template", name, "--json").data["id"]
    try:
        return house.ok("sessions", "exec", session, "--", command).out
    finally:
        house.ok("sessions", "rm", session)


def test_a_wheel_from_the_workspace_is_there_for_the_images_user(house: Installation, layouts: Path) -> None:
    assert house.register("commercial", layouts / "commercial").code == 0
    files = [inline("wheels/greeter-1.0-py3-none-any.whl", wheel("greeter"))]
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/workspace/wheels"}
    template = {"runtime_image_id": "commercial", "files": files, "env": env, "packages": {"python": ["greeter==1.0"]}}
    assert said_by(house, "wheels", template, "greeter") == "hello from the wheel\n"


def test_a_tarball_from_the_workspace_is_there_for_the_images_user(house: Installation, layouts: Path) -> None:
    assert house.register("web", layouts / "web").code == 0
    files = [inline("greeter-1.0.0.tgz", tarball("greeter"))]
    template = {
        "runtime_image_id": "web",
        "files": files,
        "packages": {"npm": ["./greeter-1.0.0.tgz"]},
        "env": {"NPM_CONFIG_OFFLINE": "true"},
    }
    assert said_by(house, "tarballs", template, "greeter") == "hello from the tarball\n"
