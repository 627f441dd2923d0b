"""Step 7. From what a Session keeps of its Template to the steps of its initialisation, in order.

Files, skills and plugins are laid out first, since packages may be among them; then packages are installed, then the
setup commands run. Which image this happens in is nobody's business here.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sandbay.domain.command import WORKSPACE, Command
from sandbay.domain.inline import InlineFile
from sandbay.domain.package import PackageTool
from sandbay.domain.template import PLUGINS_FOLDER, SKILLS_FOLDER, FrozenTemplate, SetupCommand

_LONGEST = 200


@dataclass(frozen=True)
class LayOut:
    """Write these, below the workspace."""

    doing: str
    files: tuple[InlineFile, ...]


@dataclass(frozen=True)
class Run:
    """Run it to its end, which must be 0. `tool` is the program of the image that it cannot do without."""

    doing: str
    command: Command
    tool: str | None = None


SetupStep = LayOut | Run


@dataclass(frozen=True)
class _Installer:
    """How a tool installs for every user of the sandbox. `env` is for where the Template says nothing of it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


_INSTALLERS: Mapping[PackageTool, _Installer] = {
    PackageTool.NPM: _Installer(
        ("npm", "install", "--global", "--no-fund", "--no-audit"),
        {
            "NPM_CONFIG_PREFIX": "/usr/local",  # an image may name a folder of its user's, which root would take over
            "NPM_CONFIG_UPDATE_NOTIFIER": "false",
        },
    ),
    PackageTool.PYTHON: _Installer(
        ("pip", "install", "--no-input"),
        {
            "PIP_BREAK_SYSTEM_PACKAGES": "1",  # the sandbox is nobody's system
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
        },
    ),
}


def initialise(kept: FrozenTemplate) -> tuple[SetupStep, ...]:
    """The steps. Empty when there is nothing to do."""
    return (*_laid_out(kept), *_installed(kept), *(_of_command(command) for command in kept.setup_commands))


def _laid_out(kept: FrozenTemplate) -> Iterable[SetupStep]:
    skills = (_below(f"{SKILLS_FOLDER}/{skill.name}", skill.files) for skill in kept.skills)
    plugins = (_below(f"{PLUGINS_FOLDER}/{plugin.name}", plugin.files) for plugin in kept.plugins)
    files = (*kept.files, *(file for folder in (*skills, *plugins) for file in folder))
    if files:
        yield LayOut(f"{len(files)} files", files)


def _below(folder: str, files: Iterable[InlineFile]) -> Iterable[InlineFile]:
    return tuple(replace(file, path=f"{folder}/{file.path}") for file in files)


def _installed(kept: FrozenTemplate) -> Iterable[SetupStep]:
    for tool, how in _INSTALLERS.items():
        packages = tuple(kept.packages.of(tool))
        if packages:
            env = {name: value for name, value in how.env.items() if name not in kept.env}
            # Nothing after the two dashes is an option, whatever it looks like.
            command = Command((*how.argv, "--", *packages), env=env, user="0", workdir=WORKSPACE)
            yield Run(_short(f"{how.argv[0]} install {' '.join(packages)}"), command, how.argv[0])


def _of_command(said: SetupCommand) -> SetupStep:
    doing = said.shell if said.argv is None else shlex.join(said.argv)
    return Run(_short(doing or ""), Command(said.argv, said.shell, workdir=WORKSPACE))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
