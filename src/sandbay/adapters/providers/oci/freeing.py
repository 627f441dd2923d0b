"""The end of an allocation: every step may be repeated, works on halves, and the record goes last."""

import contextlib
import signal
from dataclasses import dataclass
from pathlib import PurePosixPath

from sandbay.adapters.providers.oci.allocations import AllocationFolders
from sandbay.adapters.providers.oci.cgroups import Cgroups, below
from sandbay.adapters.providers.oci.groups import Groups
from sandbay.adapters.providers.oci.network import SandboxNetwork
from sandbay.adapters.providers.oci.resident import Resident
from sandbay.adapters.providers.oci.runtime import Runtime
from sandbay.adapters.providers.oci.spawners import Spawners
from sandbay.adapters.providers.oci.starting import Places
from sandbay.engine import linux, rootfs
from sandbay.engine.durable import remove_tree


@dataclass(frozen=True)
class Freer:
    """What all ends of a provider share.

    `parent` is the group of all its sandboxes, `grace` in seconds between the stop signal and the kill.
    """

    runtime: Runtime
    cgroups: Cgroups
    folders: AllocationFolders
    parent: PurePosixPath
    grace: float
    network: SandboxNetwork
    resident: Resident
    spawners: Spawners

    def free(self, places: Places, stop_signal: signal.Signals | None = None) -> None:
        """End its processes and remove its groups, interface, mounts and folders.

        Raises `OSError` for what would not go.
        """
        self.halt(places, stop_signal)
        self.folders.remove(places.sandbox.name)

    def halt(self, places: Places, stop_signal: signal.Signals | None = None) -> None:
        """The same, but its folder stays, with what it has written."""
        name = places.sandbox.name
        groups = Groups(self.cgroups, places.sandbox.group)
        with self.network.released(name, groups.init_pid()):
            if stop_signal is not None:
                groups.stop(stop_signal, self.grace)
            groups.kill()
        self.spawners.forget(name)
        groups.remove()
        self.runtime.forget(name)
        rootfs.dismantle(places.mounts)
        remove_tree(places.volatile)

    def tidy(self) -> None:
        """With the last allocation gone, nothing volatile stays either."""
        if self.folders.all():
            return
        self.drop_shared()
        run = self.runtime.state.parent
        if self.cgroups.own_mount and self.cgroups.members.is_mount():
            linux.umount2(self.cgroups.members)
        for folder in (self.cgroups.members, self.runtime.state, run):
            if folder.is_relative_to(run):
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def drop_shared(self) -> None:
        """With the last allocation gone, what all of them share goes. Nobody may begin one meanwhile."""
        if self.folders.all():
            return
        self.resident.remove()
        for root in self.cgroups.roots:
            with contextlib.suppress(OSError):
                below(root, self.parent).rmdir()


def stop_signal_of(text: str) -> signal.Signals:
    """The signal that an image's config names, by name or number; SIGTERM for none and for what is no signal."""
    name = text.upper()
    try:
        return signal.Signals(int(name)) if name.isdigit() else signal.Signals["SIG" + name.removeprefix("SIG")]
    except (KeyError, ValueError):
        return signal.SIGTERM
