"""A distribution's smallest system from nothing but its packages: mmdebstrap, one layer.

A shell, apt, CA certificates and nothing else; no documentation, now or by a later apt, except licences. What tells
of the machine that built it, or differs from one build to the next, is taken out.
"""

import subprocess
from pathlib import Path

from sandbay.adapters.builders import host
from sandbay.adapters.builders.layout import EPOCH, BuiltImage, add_layer
from sandbay.adapters.builders.process import Tools, need
from sandbay.domain.errors import RefusedError
from sandbay.domain.publish import Bootstrap
from sandbay.domain.reasons import Reason

LABEL = "sandbay.bootstrap"
"""In the config of a bootstrapped image and of all that stand on it: which distribution's packages they take."""
SUITES = {"debian:12": "bookworm"}
PROGRAMS = {"mmdebstrap": "mmdebstrap", "tar": "tar"}

# usr-is-merged keeps usrmerge, and with it all of perl, out.
_INCLUDE = ("ca-certificates", "usr-is-merged")
_NOT_INSTALLED = ("doc", "info", "lintian", "locale", "man")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Files that whatever mounts its own over them must not have to make: a mount point would stay behind in a layer.
_FINISH = """\
rm -f "$1"/etc/passwd- "$1"/etc/group- "$1"/etc/shadow- "$1"/etc/gshadow- "$1"/etc/subuid- "$1"/etc/subgid-
rm -f "$1"/var/cache/ldconfig/aux-cache "$1"/var/cache/debconf/*-old
find "$1"/var/log -type f -delete
printf 'localhost\\n' > "$1"/etc/hostname
printf '127.0.0.1\\tlocalhost\\n::1\\tlocalhost ip6-localhost ip6-loopback\\n' > "$1"/etc/hosts
: > "$1"/etc/resolv.conf
chmod 644 "$1"/etc/hostname "$1"/etc/hosts "$1"/etc/resolv.conf
"""


def bootstrap(what: Bootstrap, tools: Tools, blobs: Path) -> BuiltImage:
    """Make it with `tools.folder` for scratch; the layer is left in `blobs`."""
    need(PROGRAMS)
    suite = SUITES[what.distribution]
    root = tools.folder / "root"
    finish = tools.folder / "finish"
    finish.write_text(_FINISH)
    options = [
        *("--mode=root", "--variant=minbase", "--format=directory"),
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        f"--include={','.join(_INCLUDE)}",
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _NOT_INSTALLED),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        *(_source_hooks(tools.folder) if host.stage_sources(tools.folder, suite) else ()),
        f'--customize-hook=sh -eu "{finish}" "$1"',
    ]
    tools.say(f"Bootstrapping {what.distribution} from its packages.\n")
    tools.run(["mmdebstrap", *options, suite, str(root)], "mmdebstrap")
    blobs.mkdir(exist_ok=True)
    with _pack(root) as packing:
        if packing.stdout is None:
            raise RefusedError(Reason.BUILD_FAILED, "tar has no output")
        layer = add_layer(packing.stdout, blobs, f"mmdebstrap --variant=minbase {suite}")
    if packing.returncode != 0:
        raise RefusedError(Reason.BUILD_FAILED, f"tar failed (exit code {packing.returncode})")
    config = {
        "Env": [f"PATH={_PATH}", "LANG=C.UTF-8"],
        "Cmd": ["/bin/bash"],
        "Labels": {LABEL: what.distribution},
    }
    return BuiltImage(blobs, (layer,), config)


def _source_hooks(staged: Path) -> list[str]:
    """Download from where the host does, but leave in the image the stock sources that mmdebstrap wrote."""
    lists = "/etc/apt/sources.list"
    take = f'mv "$1{lists}" "{staged}/stock"; cp "{staged}"/sources.list.d/* "$1{lists}.d/"'
    put_back = f'rm "$1{lists}.d"/*; mv "{staged}/stock" "$1{lists}"'
    return [f"--setup-hook={take}", f"--customize-hook={put_back}"]


def _pack(root: Path) -> "subprocess.Popen[bytes]":
    """Start a tar of `root` that is the same for the same tree, with an empty /dev."""
    command = [
        *("tar", "--create", "--format=pax"),
        "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
        *("--sort=name", f"--mtime=@{EPOCH}", "--clamp-mtime", "--numeric-owner", "--xattrs"),
        *("--exclude=./dev/*", f"--directory={root}", "."),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
