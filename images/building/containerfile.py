"""An image on top of another: buildah, with storage of its own that goes away with the work folder.

buildah only runs the Containerfile and hands out the new layers. Config and manifest are written by us,
and the base's blobs stay as they are, byte for byte, so that images on one base share its layers.
"""

import json
import pathlib
import shutil
import subprocess
from typing import Any

from images.building import host
from images.building.layout import Image, add_layer, new_diff_ids
from images.building.recipe import Recipe

PROGRAMS = {"buildah": "buildah", "unshare": "util-linux"}

# Where RUN finds what it needs of the host: a folder that every Debian has, so no mount point is left behind.
_SEEN_AT = "/mnt"
_TAG = "localhost/sandbay-build"
# The base's layout, relative to the work folder: buildah makes an image name of the path it is given,
# and most paths are none.
_BASE = "base"
_CA_NAMES = (
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
)


class _Buildah:
    """buildah with private storage under `work`."""

    def __init__(self, work: pathlib.Path, log: pathlib.Path) -> None:
        self._work = work
        self._log = log
        temp = work / "tmp"
        temp.mkdir()
        self._env = host.tool_environment(temp)
        self.policy = work / "policy.json"
        self.policy.write_text('{"default":[{"type":"insecureAcceptAnything"}]}')
        self._driver = "overlay"
        if subprocess.run(self._command("info"), env=self._env, capture_output=True, check=False).returncode != 0:
            host.say("  overlay storage does not work here: using vfs, which is slower")
            self._driver = "vfs"

    def run(self, *arguments: str, doing: str) -> None:
        host.run(self._command(*arguments), env=self._env, cwd=self._work, log=self._log, doing=doing)

    def _command(self, *arguments: str) -> list[str]:
        storage = ("--root", str(self._work / self._driver), "--runroot", str(self._work / "run"))
        return host.enclosed(["buildah", *storage, "--storage-driver", self._driver, *arguments])


def build(
    recipe: Recipe, suite: str, base: Image, base_layout: pathlib.Path, work: pathlib.Path, log: pathlib.Path
) -> Image:
    """Run the Containerfile on `base`, which lies in `base_layout`; all blobs are left in `work/blobs`."""
    host.need(PROGRAMS)
    (work / _BASE).symlink_to(base_layout)
    buildah = _Buildah(work, log)
    for_run = _prepare_run(work / "host", suite)
    buildah.run(
        *("bud", "--format=oci", "--layers=false", "--identity-label=false", f"--timestamp={host.EPOCH}"),
        *("--isolation=chroot", "--network=host", f"--signature-policy={buildah.policy}"),
        *(f"--env={setting}" for setting in for_run),
        f"--volume={work / 'host'}:{_SEEN_AT}:ro",
        f"--build-arg=BASE=oci:{_BASE}",
        f"--tag={_TAG}",
        f"--file={recipe.folder / 'Containerfile'}",
        str(recipe.folder),
        doing="buildah bud",
    )
    exported = work / "exported"
    buildah.run(
        *("push", "--disable-compression", f"--signature-policy={buildah.policy}", _TAG, f"dir:{exported}"),
        doing="buildah push",
    )
    return _assemble(recipe, base, exported, work / "blobs", for_run)


def _prepare_run(folder: pathlib.Path, suite: str) -> list[str]:
    """Fill the folder that RUN sees under `_SEEN_AT`; return the environment for RUN as NAME=VALUE.

    Proxy settings are not among it: buildah hands its own to RUN, and they may hold a password.
    """
    folder.mkdir()
    settings = []
    apt = []
    bundle = host.ca_bundle()
    if bundle is not None:
        shutil.copyfile(bundle, folder / "ca.crt")
        settings += [f"{name}={_SEEN_AT}/ca.crt" for name in _CA_NAMES]
        apt.append(f'Acquire::https::CAInfo "{_SEEN_AT}/ca.crt";')
    if host.stage_sources(folder, suite, keyrings_at=f"{_SEEN_AT}/keyrings"):
        apt.append('Dir::Etc::sourcelist "/dev/null";')
        apt.append(f'Dir::Etc::sourceparts "{_SEEN_AT}/sources.list.d";')
    (folder / "apt.conf").write_text("\n".join(apt) + "\n")
    return [*settings, f"APT_CONFIG={_SEEN_AT}/apt.conf"]


def _assemble(recipe: Recipe, base: Image, exported: pathlib.Path, blobs: pathlib.Path, for_run: list[str]) -> Image:
    """Gzip the layers that are new, take the base's as they are, and clean the config of the build's own."""
    manifest = json.loads((exported / "manifest.json").read_bytes())
    built: dict[str, Any] = json.loads((exported / _hex(manifest["config"]["digest"])).read_bytes())
    fresh = new_diff_ids([layer.diff_id for layer in base.layers], built["rootfs"]["diff_ids"])
    blobs.mkdir()
    for layer in base.layers:
        (blobs / _hex(layer.digest)).hardlink_to(base.folder / _hex(layer.digest))
    layers = list(base.layers)
    for diff_id in fresh:
        with (exported / _hex(diff_id)).open("rb") as tar:
            layers.append(add_layer(tar, blobs, f"images/{recipe.name}/Containerfile"))
        if layers[-1].diff_id != diff_id:
            raise host.BuildError(f"buildah handed out other bytes than {diff_id}: build again")
    config = dict(built["config"])
    config["Env"] = [setting for setting in config.get("Env", []) if setting not in for_run]
    return Image(blobs, tuple(layers), config)


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
