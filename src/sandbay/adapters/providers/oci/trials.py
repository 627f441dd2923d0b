"""A sandbox that is there to be looked at, for one check of an image."""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from sandbay.adapters.providers.oci.programs import find
from sandbay.adapters.providers.oci.root import SandboxRoot
from sandbay.adapters.providers.oci.starting import image_user
from sandbay.domain.command import WORKSPACE, Command, User, environment, workdir_of
from sandbay.domain.release import ImageConfig
from sandbay.ports.provider import Emit, Exit


@dataclass(frozen=True)
class SandboxTrial:
    """The port's `Trial`. `root` opens the running sandbox's root, `run` runs a command in it."""

    config: ImageConfig
    root: Callable[[], SandboxRoot]
    run: Callable[[Command, Emit], Exit]

    @property
    def user(self) -> User:
        """The image's user, by the image's own files."""
        with self.root() as root:
            return image_user(root, self.config)

    @property
    def workdir(self) -> str:
        """Where commands begin."""
        return posixpath.normpath(posixpath.join(WORKSPACE, workdir_of(self.config, Command())))

    def find(self, program: str) -> str | None:
        """Where the image's PATH leads for this name."""
        user = self.user
        search = environment(self.config, user).get("PATH")
        with self.root() as root:
            found = find(root, program, search=search, workdir=self.workdir, user=user)
        return None if isinstance(found, int) else found

    def exec(self, command: Command, *, emit: Emit) -> Exit:
        """Run a command to its end."""
        return self.run(command, emit)
