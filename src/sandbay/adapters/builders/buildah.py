"""A Containerfile on verified bases: buildah, with storage of its own that goes away with its work folder.

buildah only runs the instructions and hands out the new layers. Config and manifest are written by us, and the base's
blobs stay as they are, byte for byte, so that images on one base share its layers. What buildah may read is named
twice: the file that it is given mentions nothing else (`domain.containerfile`), and its policy accepts only layouts of
the work folder.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbay.adapters.builders import host
from sandbay.adapters.builders.bootstrap import LABEL, SUITES
from sandbay.adapters.builders.layout import EPOCH, BuiltImage, BuiltLayer, add_layer, on_base, write_layout
from sandbay.adapters.builders.process import Tools, need
from sandbay.domain.containerfile import Containerfile
from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.engine.digest import hex_of

PROGRAMS = {"buildah": "buildah"}

# Where RUN finds what it needs of the host: a folder that most systems have, so no mount point is left behind.
_SEEN_AT = "/mnt"
_TAG = "localhost/sandbay-build"
_CA_NAMES = (
    *("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"),
    *("NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE"),
)
# With them, who is confined by chroot alone walks out of it, or makes itself the host's disk.
_WITHOUT = ("CAP_SYS_CHROOT", "CAP_MKNOD")


class Buildah:
    """buildah with private storage under the tools' folder."""

    def __init__(self, tools: Tools) -> None:
        """Find out which storage works here."""
        need(PROGRAMS)
        self._tools, self._work = tools, tools.folder
        self._driver = "overlay"
        asked = subprocess.run(
            [*self._storage(), "info"], env=tools.environment, cwd=self._work, capture_output=True, check=False
        )
        if asked.returncode != 0:
            tools.say("Overlay storage does not work here; using vfs, which is slower.\n")
            self._driver = "vfs"

    def build(
        self, file: Containerfile, bases: Mapping[str, BuiltImage], context: Path, blobs: Path, platform: Platform
    ) -> BuiltImage:
        """Run the file; all blobs of the image are left in `blobs`."""
        names = {text: f"oci:base{number}" for number, text in enumerate(file.images)}
        for text, name in names.items():
            write_layout(self._work / name.removeprefix("oci:"), _plain(bases[text]), platform)
        base = None if file.base is None else bases[file.base]
        (self._work / "Containerfile").write_text(file.written(names))
        for_run = _prepare_run(self._work / "host", base)
        self._run(
            *("bud", "--format=oci", "--layers=false", "--identity-label=false", f"--timestamp={EPOCH}"),
            *("--isolation=chroot", "--network=host", f"--signature-policy={self._policy()}"),
            *(f"--cap-drop={name}" for name in _WITHOUT),
            *(f"--env={setting}" for setting in for_run),
            f"--volume={self._work / 'host'}:{_SEEN_AT}:ro",
            *(f"--tag={_TAG}", f"--file={self._work / 'Containerfile'}", str(context)),
            doing="buildah bud",
        )
        exported = self._work / "exported"
        policy = f"--signature-policy={self._policy()}"
        self._run("push", "--quiet", "--disable-compression", policy, _TAG, f"dir:{exported}", doing="buildah push")
        return _assemble(exported, base, blobs, for_run)

    def _run(self, *arguments: str, doing: str) -> None:
        self._tools.run([*self._storage(), *arguments], doing)

    def _storage(self) -> list[str]:
        places = ("--root", str(self._work / self._driver), "--runroot", str(self._work / "run"))
        return ["buildah", *places, "--storage-driver", self._driver]

    def _policy(self) -> Path:
        """Images come from this folder or from the storage in it; everything else is refused."""
        accept = [{"type": "insecureAcceptAnything"}]
        transports = {"oci": {str(self._work.resolve()): accept}, "containers-storage": {"": accept}}
        path = self._work / "policy.json"
        path.write_text(json.dumps({"default": [{"type": "reject"}], "transports": transports}))
        return path


def _plain(base: BuiltImage) -> BuiltImage:
    """Without triggers: they would run what nobody has read."""
    return BuiltImage(base.folder, base.layers, {k: v for k, v in base.config.items() if k != "OnBuild"})


def _prepare_run(folder: Path, base: BuiltImage | None) -> list[str]:
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
    suite = SUITES.get(str((base.config.get("Labels") or {}).get(LABEL))) if base else None
    if suite is not None and host.stage_sources(folder, suite, keyrings_at=f"{_SEEN_AT}/keyrings"):
        apt.append('Dir::Etc::sourcelist "/dev/null";')
        apt.append(f'Dir::Etc::sourceparts "{_SEEN_AT}/sources.list.d";')
    (folder / "apt.conf").write_text("\n".join(apt) + "\n")
    return [*settings, f"APT_CONFIG={_SEEN_AT}/apt.conf"]


def _assemble(exported: Path, base: BuiltImage | None, blobs: Path, for_run: list[str]) -> BuiltImage:
    """Pack the layers that are new, take the base's as they are, and clean the config of the build's own."""
    manifest = json.loads((exported / "manifest.json").read_bytes())
    built: dict[str, Any] = json.loads((exported / hex_of(manifest["config"]["digest"])).read_bytes())
    fresh = on_base(base, built["rootfs"]["diff_ids"])
    blobs.mkdir(exist_ok=True)
    layers: list[BuiltLayer] = list(base.layers) if base else []
    for digest in {layer.digest for layer in layers}:
        if base is not None and not (blobs / hex_of(digest)).exists():
            (blobs / hex_of(digest)).hardlink_to(base.folder / hex_of(digest))
    for diff_id in fresh:
        with (exported / hex_of(diff_id)).open("rb") as tar:
            layers.append(add_layer(tar, blobs, "Containerfile"))
        if layers[-1].diff_id != diff_id:
            raise RefusedError(Reason.BUILD_FAILED, "the build tool handed out other bytes than it says")
    config = dict(built.get("config") or {})
    config["Env"] = [setting for setting in config.get("Env") or [] if setting not in for_run]
    return BuiltImage(blobs, tuple(layers), config)
