"""An image from nothing but packages: mmdebstrap, one layer."""

import pathlib
import subprocess
import tomllib

from images.building import host
from images.building.layout import Image, add_layer
from images.building.recipe import Recipe

PROGRAMS = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "tar": "tar"}


def build(recipe: Recipe, suite: str, work: pathlib.Path, log: pathlib.Path) -> Image:
    """Bootstrap `suite` and pack it; the blobs are left in `work/blobs`."""
    host.need(PROGRAMS)
    settings = tomllib.loads((recipe.folder / "bootstrap.toml").read_text())
    root = work / "root"
    temp = work / "tmp"
    temp.mkdir()
    env = host.tool_environment(temp) | {"SETUP": str(recipe.folder / "setup.sh"), "STAGED": str(work)}
    command = [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        "--format=directory",
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        f"--include={','.join(settings['include'])}",
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in settings["exclude_paths"]),
        *(f"--dpkgopt=path-include={pattern}" for pattern in settings["include_paths"]),
        *(_source_hooks() if host.stage_sources(work, suite) else ()),
        '--customize-hook="$SETUP" "$1"',
        suite,
        str(root),
    ]
    host.run(host.enclosed(command), env=env, cwd=work, log=log, doing="mmdebstrap")
    blobs = work / "blobs"
    blobs.mkdir()
    with _pack(root, log) as packing:
        if packing.stdout is None:
            raise host.BuildError("tar has no output")
        layer = add_layer(packing.stdout, blobs, f"mmdebstrap --variant=minbase {suite}")
    if packing.returncode != 0:
        raise host.BuildError(f"tar failed (exit code {packing.returncode}): see {log}")
    return Image(blobs, (layer,), settings["config"])


def _source_hooks() -> list[str]:
    """Download from where the host does, but leave in the image the stock sources that mmdebstrap wrote."""
    take = 'mv "$1/etc/apt/sources.list" "$STAGED/stock"; cp "$STAGED"/sources.list.d/* "$1/etc/apt/sources.list.d/"'
    put_back = 'rm "$1"/etc/apt/sources.list.d/*; mv "$STAGED/stock" "$1/etc/apt/sources.list"'
    return [f"--setup-hook={take}", f"--customize-hook={put_back}"]


def _pack(root: pathlib.Path, log: pathlib.Path) -> subprocess.Popen[bytes]:
    """Start a tar of `root` that is the same for the same tree, with an empty /dev."""
    command = [
        "tar",
        "--create",
        "--format=pax",
        "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
        "--sort=name",
        f"--mtime=@{host.EPOCH}",
        "--clamp-mtime",
        "--numeric-owner",
        "--xattrs",
        "--exclude=./dev/*",
        f"--directory={root}",
        ".",
    ]
    with log.open("ab") as errors:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
