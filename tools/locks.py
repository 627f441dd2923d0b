"""./dev lock: remake the hashed locks. They name versions and hashes, never a host."""

from tools.machine import PYTHON, ROOT, UV, Part, must_run, say

_REQUIREMENTS = ROOT / "requirements"
# --no-config and the options below keep this machine's mirrors and paths out of the result.
_COMPILE = (
    "pip",
    "compile",
    "--quiet",
    "--universal",
    "--generate-hashes",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-config",
    "--python-version",
    "3.11",
    "--python",
    str(PYTHON),
)


def lock(*, upgrade: bool) -> None:
    """Write requirements/dev.txt (everything) and requirements/uv.txt (the bootstrap, same version)."""
    more = ["--upgrade"] if upgrade else []
    everything = [
        "pyproject.toml",
        "--extra",
        "server",
        "--group",
        "dev",
        "--group",
        "fuzz",
        "-o",
        "requirements/dev.txt",
    ]
    must_run([UV, *_COMPILE, *more, *everything], doing="Locking requirements/dev.txt")
    bootstrap: list[Part] = [_REQUIREMENTS / "uv.in", "-c", "requirements/dev.txt", "-o", "requirements/uv.txt"]
    must_run([UV, *_COMPILE, "--no-annotate", *bootstrap], doing="Locking requirements/uv.txt")
    say("Locked: requirements/dev.txt and requirements/uv.txt.")
