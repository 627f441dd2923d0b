"""What a build takes from the machine it runs on: proxies, CA bundle, Debian's own apt sources."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePath

from sandbay.adapters.builders.layout import EPOCH

CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
PROXY_NAMES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")

_APT = Path("/etc/apt")


def tool_environment(temp: Path) -> dict[str, str]:
    """Return the whole environment of a build tool: nothing of the caller's but PATH, CA and proxies."""
    kept = {name: os.environ[name] for name in ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ}
    fixed = {
        "HOME": str(temp),
        "LC_ALL": "C.UTF-8",
        "SOURCE_DATE_EPOCH": str(EPOCH),
        "TMPDIR": str(temp),
    }
    return {**kept, **proxies(), **fixed}


def proxies() -> dict[str, str]:
    """Return the host's proxy settings under their lower-case names; the environment beats apt's settings."""
    found = {}
    for name in PROXY_NAMES:
        value = os.environ.get(name) or os.environ.get(name.upper()) or _apt_proxy(name)
        if value:
            found[name] = value
    return found


def ca_bundle() -> Path | None:
    """Return the bundle of CA certificates that this host trusts, if it has one."""
    candidates = (Path(os.environ.get("SSL_CERT_FILE") or CA_BUNDLE), CA_BUNDLE)
    return next((path for path in candidates if path.is_file()), None)


def stage_sources(folder: Path, suite: str, *, keyrings_at: str | None = None) -> bool:
    """Copy the host's own Debian sources for `suite` into `folder`; False when it has none.

    `folder` gets `sources.list.d/`, and `keyrings/` when `keyrings_at` says where a build will see it.
    """
    parts = folder / "sources.list.d"
    parts.mkdir(parents=True)
    files = [_APT / "sources.list", *sorted((_APT / "sources.list.d").glob("*"))]
    for source in files:
        if source.suffix not in {".list", ".sources"} or not source.is_file():
            continue
        entries = debian_entries(source.read_text(errors="replace"), suite, deb822=source.suffix == ".sources")
        if entries:
            text = "\n".join(entries) + "\n"
            staged = text if keyrings_at is None else _with_keyrings(text, folder / "keyrings", keyrings_at)
            (parts / source.name).write_text(staged)
    return any(parts.iterdir())


def debian_entries(text: str, suite: str, *, deb822: bool) -> list[str]:
    """Return the entries of one apt source file that are Debian's own for `suite`, each as it is written.

    Debian's own: the suite, its updates or its security, component main, and signed by nobody in
    particular or by a keyring of the archive. Whatever else a host has must not change an image.
    """
    suites = {suite, f"{suite}-updates", f"{suite}-security"}
    if deb822:
        bare = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        stanzas = [stanza + "\n" for stanza in re.split(r"\n\s*\n", bare) if stanza.strip()]
        return [stanza for stanza in stanzas if _is_debian_stanza(stanza, suites)]
    return [line for line in map(str.strip, text.splitlines()) if _is_debian_line(line, suites)]


def _is_debian_stanza(stanza: str, suites: set[str]) -> bool:
    unfolded = re.sub(r"\n[ \t]+", " ", stanza)
    pairs = (line.partition(":") for line in unfolded.splitlines() if ":" in line)
    fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return (
        fields.get("enabled", "yes").lower() != "no"
        and "deb" in fields.get("types", "").split()
        and bool(fields.get("suites"))
        and set(fields["suites"].split()) <= suites
        and "main" in fields.get("components", "").split()
        and _signed_by_debian(fields.get("signed-by", "").split())
    )


def _is_debian_line(line: str, suites: set[str]) -> bool:
    match = re.fullmatch(r"deb\s+(?:\[([^\]]*)\]\s+)?\S+\s+(\S+)\s+([^#]+?)\s*(?:#.*)?", line)
    if match is None:
        return False
    options, suite, components = match.groups(default="")
    signers = [option.partition("=")[2] for option in options.split() if option.lower().startswith("signed-by=")]
    return suite in suites and "main" in components.split() and _signed_by_debian(signers)


def _signed_by_debian(signers: Iterable[str]) -> bool:
    return all(PurePath(signer).name.startswith("debian-archive") for signer in signers)


def _with_keyrings(text: str, keyrings: Path, seen_at: str) -> str:
    keyrings.mkdir(exist_ok=True)
    for path in set(re.findall(r"/[^\s,\]]*/debian-archive[^\s,\]]*", text)):
        shutil.copyfile(path, keyrings / PurePath(path).name)
        text = text.replace(path, f"{seen_at}/{PurePath(path).name}")
    return text


def _apt_proxy(name: str) -> str | None:
    scheme = name.removesuffix("_proxy")
    if scheme == "no" or shutil.which("apt-config") is None:
        return None
    asked = ["apt-config", "dump", "--format", "%v%n", f"Acquire::{scheme}::Proxy"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return answer if answer not in {"", "DIRECT"} else None
