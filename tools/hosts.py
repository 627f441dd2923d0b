"""Check that no lock and no file names the host of a package registry.

A mirror, a proxy or a machine without a network must be able to serve every install: which host to ask is
the business of the machine's own configuration.
"""

import re
import subprocess

from tools.machine import ROOT

# In pieces, so that this file is no exception to its own rule.
_PIECES = [
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("deb", "debian", "org"),
    ("security", "debian", "org"),
    ("snapshot", "debian", "org"),
    ("archive", "ubuntu", "com"),
    ("npmjs", "org"),
    ("yarnpkg", "com"),
    ("golang", "org"),
    ("crates", "io"),
]
NAMES = [".".join(pieces) for pieces in _PIECES]
_NAMED = re.compile("|".join(map(re.escape, NAMES)).encode())
_LOCK_OPTION = re.compile(r"://|^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b| @ ", re.MULTILINE)


def problems() -> list[str]:
    """Return one line per place where a host is named."""
    locks = [
        f"{path.relative_to(ROOT)}: a lock may hold versions and hashes only, not {option.group().strip()!r}"
        for path in sorted((ROOT / "requirements").glob("*.txt"))
        if (option := _LOCK_OPTION.search(path.read_text()))
    ]
    return locks + [
        f"{name}:{number}: names the host of a package registry, {found.group().decode()}"
        for name in _committed_files()
        for number, line in enumerate((ROOT / name).read_bytes().splitlines(), start=1)
        if (found := _NAMED.search(line))
    ]


def _committed_files() -> list[str]:
    """Return what is committed or would be with `git add`, less what is deleted in the work tree."""
    # Root may check a tree that belongs to somebody else.
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in sorted(set(listed.split("\0"))) if name and (ROOT / name).is_file()]
