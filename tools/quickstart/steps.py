"""The steps of the tour, in order. Each shows one thing, and insists that it is so."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sandbay.sdk import Client, Sandbox
from tools.machine import ROOT
from tools.quickstart.guide import REFUSED, SANDBAY, Guide, insist
from tools.quickstart.publishing import publish
from tools.quickstart.work import COMMERCIAL, REVIEW, SECOND_REVIEW, WORKS, Work

PICTURES = ROOT / "build" / "quickstart"
PROJECT = "acme"
SETTING = "git config --system init.defaultBranch || echo none"


def start(guide: Guide) -> None:
    """An installation of the tour's own."""
    guide.step(
        "Start an installation",
        "Core, which holds what is decided, and one node, which runs sandboxes, in one process on this machine.",
    )
    guide.run("up", "--port", str(guide.port), "--detach")


def images(guide: Guide) -> None:
    """Five images from their folders."""
    guide.step(
        "Publish five images",
        "Each is a folder with an image.toml and a Containerfile. `base` comes first; the others stand on it, share "
        "its layers, and are built side by side. A release can be chosen once a sandbox of it has been started "
        "and its tools have told their versions.",
    )
    publish(guide, [ROOT / "images" / "base"])
    publish(guide, [work.folder for work in WORKS])
    guide.run("images", "ls")


def project(guide: Guide) -> None:
    """A tenant with a Template for each kind of work."""
    guide.step(
        "A project with Templates",
        "A Template prepares sandboxes for one kind of work: files, environment, setup commands, and the tools that "
        "an image must have for it. It may name an image; the project may prefer one for those that do not.",
    )
    with guide.administrator() as admin:
        known = {project.name for project in admin.projects.list()}
    if PROJECT not in known:
        guide.run("projects", "create", PROJECT)
    guide.project_key = guide.ask("keys", "create", "tour", "--project", PROJECT)["secret"]
    guide.run("projects", "set", "--image", COMMERCIAL.image)
    with guide.project() as client:
        there = {template.name for template in client.templates.list()}
        for left in client.sessions.list():
            client.sessions.delete(left.id)
    for work in WORKS:
        folder = str(work.template.relative_to(ROOT))
        guide.run("templates", *(("update", work.image) if work.image in there else ("create",)), folder)


@dataclass(frozen=True, slots=True)
class Done:
    """A Session that has done its work, and lives on."""

    box: Sandbox
    seconds_to_start: float
    output: str


def four_sessions(guide: Guide) -> None:
    """Four images at work in one installation at the same time."""
    guide.step(
        "Four Sessions at once",
        "A Session is one sandbox. Which release it runs is decided once, when it is admitted, and frozen for its "
        "whole life, with who decided.",
    )
    guide.say(">>> Sandbox.create(template=…)  # in Python, for the four Templates at once")
    with guide.project() as client, ThreadPoolExecutor() as pool:
        done = dict(zip(WORKS, pool.map(lambda work: _at_work(client, work), WORKS), strict=True))
    guide.say(f"  {'SESSION':<26}{'IMAGE':<14}{'DECIDED BY':<18}{'STARTED IN':<12}DIGEST")
    for it in done.values():
        image, by = it.box.image, it.box.image.decided_by
        decided = f"{by.level} {by.subject or ''}"
        name, seconds = f"{image.name}:{image.release}", f"{it.seconds_to_start:.1f} s"
        guide.say(f"  {it.box.id:<26}{name:<14}{decided:<18}{seconds:<12}{image.digest}")
    for work, it in done.items():
        insist(it.box.image.name == work.image, f"{work.image} was wanted, but {it.box.image} runs")
        guide.say(f"\n{work.image}: {work.task}")
        guide.say("\n".join(f"  | {line}" for line in it.output.splitlines()))
        guide.sessions[work.image] = it.box.id
        if work.fetch is not None:
            PICTURES.mkdir(parents=True, exist_ok=True)
            guide.run("sessions", "cp", f"{it.box.id}:{work.fetch}", str(PICTURES / work.fetch))


def _at_work(client: Client, work: Work) -> Done:
    begun = time.monotonic()
    box = Sandbox.create(template=work.image, client=client)
    started = time.monotonic() - begun
    result = box.commands.run(work.line)
    insist(result.exit_code == 0, f"the work on {work.image} ended with {result.exit_code}:\n{result.stderr}")
    return Done(box, started, result.stdout)


def moved_channel(guide: Guide) -> None:
    """`review:stable` moves while a Session lives; the Session keeps what it was admitted on."""
    guide.step(
        "A channel moves, a Session does not",
        "`review` means the channel `review:stable`, a pointer to one release. Publishing makes a release, promoting "
        "moves the channel. New Sessions get the new release; the one that runs keeps its own.",
    )
    publish(guide, [SECOND_REVIEW])
    old = guide.sessions[REVIEW.image]
    new = guide.ask("sessions", "create", "--template", REVIEW.image)["id"]
    with guide.project() as client:
        before, after = (Sandbox.connect(session, client=client) for session in (old, new))
        for age, box in (("before", before), ("after", after)):
            setting = box.commands.run(SETTING).stdout.strip()
            name = f"{box.image.name}:{box.image.release}"
            guide.say(f"  created {age:<8}{name}  {box.image.digest}  default branch: {setting}")
    insist(before.image.digest != after.image.digest, "both Sessions run the same release")
    guide.run("sessions", "rm", new)


def three_refusals(guide: Guide) -> None:
    """Three things that cannot be had, three different answers, and never another image instead."""
    guide.step(
        "Three things that cannot be had",
        "There are good images right beside. Still nobody gets another one than asked for: each answer is a reason "
        "of its own, and what to do about it.",
    )
    guide.run("images", "evict", "review:2")
    for code, arguments in _refused().items():
        answer = guide.run(*arguments, expect=REFUSED)
        insist(f"({code})" in answer, f"the answer should have been {code}")


def _refused() -> dict[str, Sequence[str]]:
    foreign = "linux/amd64" if os.uname().machine == "aarch64" else "linux/arm64"
    return {
        "image_unknown": ("run", "reviewer", "--", "true"),
        "image_unsupported": ("run", "review", "--platform", foreign, "--", "true"),
        "image_not_ready": ("run", "review", "--wait", "0", "--", "true"),
    }


def stay(guide: Guide) -> None:
    """Say what is there, and what to try next."""
    review, design = guide.sessions["review"], guide.sessions["design"]
    down = f"sudo SANDBAY_HOME={guide.home} {SANDBAY} down" if os.environ.get("SUDO_USER") else "sandbay down"
    guide.step("It stays up", "The four Sessions live. In this or another terminal:")
    guide.say(f"export PATH={SANDBAY.parent}:$PATH")
    guide.say(f"export SANDBAY_HOME={guide.home} SANDBAY_API_KEY={guide.project_key}\n")
    for command, why in (
        ("sandbay sessions ls", "the four"),
        (f"sandbay sessions exec {review} --shell 'git log --oneline'", "go on with one of them"),
        (f"sandbay sessions get {design}", "what it runs, who decided, and why"),
        ("sandbay run web -- node --version", "one command in a sandbox of its own"),
        ("sandbay images inspect commercial", "a release: layers, verified tools"),
        ("sandbay images explain --template review", "what a create would decide now"),
        (down, "stop it all"),
    ):
        guide.say(f"{command:<76}  # {why}")
    guide.say(f"\nThe interface is at {guide.url}: /v1 with the key above, /core/v1 with the administrator key")
    guide.say(f"in {guide.home / 'context.json'}. The picture: {PICTURES / 'request.png'}")


def leave_nothing(guide: Guide) -> None:
    """Stop the installation and remove its folder."""
    guide.step("Stop", "Sessions, sandboxes, mounts, process and files of the tour go. What was built is kept.")
    guide.run("down")
    if guide.home.exists():
        shutil.rmtree(guide.home)


Step = Callable[[Guide], None]
STEPS: Sequence[Step] = (start, images, project, four_sessions, moved_channel, three_refusals)
