"""What a build takes from the machine it runs on: programs, proxies, CA bundle, Debian's own apt sources."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence

CA_BUNDLE = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
# Files newer than this get this time, so that the same packages give the same bytes: Debian 12's first day.
EPOCH = 1686355200
CREATED = "2023-06-10T00:00:00Z"
PROXY_NAMES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")

_APT = pathlib.Path("/etc/apt")
_LOG_TAIL = 15


class BuildError(Exception):
    """The build cannot go on. The message is one line for a person, with what to do next."""


def say(line: str) -> None:
    """Tell the person at the terminal what is going on."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def need(programs: Mapping[str, str]) -> None:
    """Raise `BuildError` unless every program (name → Debian package) is on PATH."""
    missing = sorted({package for name, package in programs.items() if shutil.which(name) is None})
    if missing:
        raise BuildError(f"missing programs: run `apt-get install {' '.join(missing)}` first")


def enclosed(command: Sequence[str]) -> list[str]:
    """Return `command` in mount and pid namespaces of its own.

    However it ends, kill -9 of the builder included, its mounts and its processes end with it.
    """
    namespaces = ("--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")
    return ["setpriv", "--pdeathsig", "KILL", "--", "unshare", *namespaces, "--", *command]


def tool_environment(temp: pathlib.Path) -> dict[str, str]:
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


def ca_bundle() -> pathlib.Path | None:
    """Return the bundle of CA certificates that this host trusts, if it has one."""
    candidates = (pathlib.Path(os.environ.get("SSL_CERT_FILE") or CA_BUNDLE), CA_BUNDLE)
    return next((path for path in candidates if path.is_file()), None)


def run(command: Sequence[str], *, env: Mapping[str, str], cwd: pathlib.Path, log: pathlib.Path, doing: str) -> None:
    """Run a build tool in `cwd` with its output in `log`; raise `BuildError` with the end of it when it fails."""
    alive, held = os.pipe()
    os.set_inheritable(held, True)  # noqa: FBT003 - its only parameter
    with log.open("ab") as output, os.fdopen(alive, "rb") as until_dead:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            process = subprocess.Popen(
                command,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                close_fds=False,  # hands on what is inheritable: the pipe, and the lock on the output folder
            )
        finally:
            os.close(held)
        try:
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            until_dead.read()  # ends with the last descendant: whoever removes the folder comes after it
            raise
    if code != 0:
        tail = log.read_text(errors="replace").splitlines()[-_LOG_TAIL:]
        sys.stderr.write("".join(f"  | {line}\n" for line in tail))
        raise BuildError(f"{doing} failed (exit code {code}): see above, or all of it in {log}")


def stage_sources(folder: pathlib.Path, suite: str, *, keyrings_at: str | None = None) -> bool:
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
    return all(pathlib.PurePath(signer).name.startswith("debian-archive") for signer in signers)


def _with_keyrings(text: str, keyrings: pathlib.Path, seen_at: str) -> str:
    keyrings.mkdir(exist_ok=True)
    for path in set(re.findall(r"/[^\s,\]]*/debian-archive[^\s,\]]*", text)):
        shutil.copyfile(path, keyrings / pathlib.PurePath(path).name)
        text = text.replace(path, f"{seen_at}/{pathlib.PurePath(path).name}")
    return text


def _apt_proxy(name: str) -> str | None:
    scheme = name.removesuffix("_proxy")
    if scheme == "no" or shutil.which("apt-config") is None:
        return None
    asked = ["apt-config", "dump", "--format", "%v%n", f"Acquire::{scheme}::Proxy"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return answer if answer not in {"", "DIRECT"} else None
