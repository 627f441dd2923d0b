"""The newcomer's tour: two images, real work on each at once, a moved channel, three different refusals.

Everything is done with the command line that `./dev setup` installs; each command is shown before it runs.
"""

import argparse
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SANDBAY = ROOT / ".venv" / "bin" / "sandbay"
HOME = Path("/var/lib/sandbay-quickstart")
REFUSED = 125

DIFF = """
mkdir -p before after
printf 'def total(items):\\n    return sum(items)\\n' > before/cart.py
printf 'def total(items, tax):\\n    return sum(items) * (1 + tax)\\n' > after/cart.py
diff -u before/cart.py after/cart.py || test $? -eq 1
"""
REVIEW = """
git init -q . && git config user.name tour && git config user.email tour@example.invalid
printf 'def total(items):\\n    return sum(items)  # TODO: tax\\n' > cart.py
git add . && git commit -qm 'Add the cart'
printf 'def total(items, tax):\\n    return sum(items) * (1 + tax)\\n' > cart.py
git diff --stat && git diff | rg '^[-+] '
"""


class TourError(Exception):
    """A step did not do what it shows."""


class Tour:
    """Runs commands the way a reader would and shows them."""

    def __init__(self, home: Path, port: int) -> None:
        """Use an installation of its own, so that a real one on this host is left alone."""
        self.home, self.port = home, port
        self._env = {**os.environ, "SANDBAY_HOME": str(home), "SANDBAY_BUILD_CACHE": str(ROOT / "build" / "cache")}
        for name in ("SANDBAY_URL", "SANDBAY_API_KEY", "SANDBAY_ADMIN_KEY"):
            self._env.pop(name, None)

    def run(self, *arguments: str, expect: int = 0, show: bool = True) -> str:
        """Run `sandbay …`, show it, and insist on its exit code; what it printed."""
        if show:
            print(f"  $ sandbay {shlex.join(arguments)}")
        done = subprocess.run(
            [SANDBAY, *arguments], env=self._env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if show:
            for line in (done.stderr + done.stdout).splitlines():
                print(f"    {line}")
        if done.returncode != expect:
            raise TourError(f"sandbay {shlex.join(arguments)}: exit {done.returncode}, not {expect}\n{done.stderr}")
        return done.stderr if expect else done.stdout

    def ask(self, *arguments: str, expect: int = 0) -> dict[str, Any]:
        """The same with `--json`, not shown; a refusal's envelope comes from standard error."""
        answer: dict[str, Any] = json.loads(self.run(*arguments, "--json", expect=expect, show=False))
        return answer


def heading(text: str) -> None:
    """One step of the tour."""
    print(f"\n== {text}")


def publish(tour: Tour, name: str) -> None:
    """Publish an example image; unchanged ones are not built again."""
    tour.run("images", "publish", str(ROOT / "images" / name), "--wait")


def start(tour: Tour) -> None:
    """An installation, and two images in it."""
    heading("Start: Core and one node on this machine")
    tour.run("up", "--port", str(tour.port), "--detach")
    heading("Publish two images: base from Debian packages, review on top of it")
    for name in ("base", "review"):
        publish(tour, name)
    tour.run("images", "ls")
    tour.run("deployment", "show")


def side_by_side(tour: Tour) -> None:
    """A Session on each image at once, with real work."""
    heading("Two Sessions at once, each on its own image")
    work = {"base": DIFF, "review": REVIEW}
    with ThreadPoolExecutor() as pool:
        results = dict(zip(work, pool.map(lambda name: _session(tour, name, work[name]), work), strict=True))
    for name, (session, output) in results.items():
        image = session["image"]
        _insist(image["name"] == name, f"{name} ran {image}")
        print(f"  {session['id']} on {name}:{image['release']}  {image['digest']}")
        print(f"    decided by: {image['decided_by']['level']}")
        for line in output.splitlines():
            print(f"    | {line}")


def _session(tour: Tour, image: str, script: str) -> tuple[dict[str, Any], str]:
    session = tour.ask("sessions", "create", "--image", image)
    output = tour.run("sessions", "exec", session["id"], "--shell", script, show=False)
    tour.run("sessions", "rm", session["id"], show=False)
    return session, output


def moved_channel(tour: Tour) -> None:
    """`review:stable` moves while a Session lives; the Session keeps what it was admitted on."""
    heading("review:stable moves to a changed release while a Session lives")
    old = tour.ask("sessions", "create", "--image", "review:stable")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "image.toml").write_text('name = "review"\nbase = "image:review:1"\n')
        lines = ["ARG BASE", "FROM ${BASE}", "USER root", "RUN echo 2 >/etc/review-revision", "USER agent"]
        Path(folder, "Containerfile").write_text("\n".join(lines) + "\n")
        tour.run("images", "publish", folder, "--wait")
    tour.run("images", "promote", "review:2")
    new = tour.ask("sessions", "create", "--image", "review:stable")
    for label, session in (("before", old), ("after", new)):
        said = "cat /etc/review-revision 2>/dev/null || echo 1"
        revision = tour.run("sessions", "exec", session["id"], "--shell", said, show=False)
        image = tour.ask("sessions", "get", session["id"])["image"]
        print(f"  created {label:>6} the move: review:{image['release']} {image['digest']} says {revision.strip()}")
        _insist(revision.strip() == ("1" if session is old else "2"), f"{label}: revision {revision.strip()}")
    for session in (old, new):
        tour.run("sessions", "rm", session["id"], show=False)


def three_refusals(tour: Tour) -> None:
    """Three things that cannot be had, three different answers, and never another image instead."""
    heading("Three things that cannot be had: three different answers")
    tour.run("images", "evict", "review:2")
    asked = {
        "image_unknown": ("run", "reviewer", "--", "true"),
        "image_unsupported": ("run", "review", "--platform", foreign_platform(), "--", "true"),
        "image_not_ready": ("run", "review", "--wait", "0", "--", "true"),
    }
    for code, arguments in asked.items():
        answer = tour.run(*arguments, expect=REFUSED)
        _insist(code in answer, f"expected {code}, got {answer}")


def foreign_platform() -> str:
    """A platform that this machine is not."""
    return "linux/amd64" if os.uname().machine == "aarch64" else "linux/arm64"


def _insist(condition: object, otherwise: str) -> None:
    if not condition:
        raise TourError(otherwise)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def stay(tour: Tour) -> None:
    """Say how to go on."""
    heading("It stays up. Go on with:")
    print(f"  export SANDBAY_HOME={tour.home} PATH={SANDBAY.parent}:$PATH")
    print("  sandbay run review -- git --version")
    print("  sandbay down                      # stops it and ends its Sessions")
    print(f"  http://127.0.0.1:{tour.port}            # keys are in {tour.home / 'context.json'}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole tour; 0 when every step did what it shows."""
    parser = argparse.ArgumentParser(prog="./dev quickstart", description=__doc__)
    parser.add_argument("--exit", action="store_true", help="stop and remove everything at the end")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    tour = Tour(HOME, free_port())
    ended = False
    try:
        for step in (start, side_by_side, moved_channel, three_refusals):
            step(tour)
        ended = True
    except TourError as error:
        print(f"\nquickstart: {error}", file=sys.stderr)
    finally:
        if options.exit or not ended:
            heading("Stop")
            tour.run("down")
            shutil.rmtree(tour.home, ignore_errors=True)
    if ended and not options.exit:
        stay(tour)
    print(f"\n{'Done' if ended else 'Failed'} after {time.monotonic() - begun:.0f} s.")
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main())
