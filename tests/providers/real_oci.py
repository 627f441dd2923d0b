"""A real oci provider for tests: images made once, an installation of its own for each test.

Run as a program it is a node that is about to die: `python -m tests.providers.real_oci FOLDER INSTALLATION STEP`.
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.adapters.providers.oci import network
from sandbay.adapters.providers.oci.allocations import AllocationFolders
from sandbay.adapters.providers.oci.freeing import Freer
from sandbay.adapters.providers.oci.groups import Groups
from sandbay.adapters.providers.oci.network import SandboxNetwork
from sandbay.adapters.providers.oci.provider import OciProvider
from sandbay.adapters.providers.oci.reaping import Reaping
from sandbay.adapters.providers.oci.resident import Resident
from sandbay.adapters.providers.oci.settings import OciSettings
from sandbay.domain.allocation import Order
from sandbay.domain.command import Command
from sandbay.domain.declaration import Network
from sandbay.domain.ids import AllocationId
from sandbay.domain.platform import Platform
from sandbay.domain.release import Variant
from sandbay.engine import rootfs
from sandbay.engine.store import LayerStore
from sandbay.ports.image_source import Wanted
from sandbay.ports.provider import Exit, Stream
from tests.contracts.provider_harness import order_for, silent
from tests.support.leaks import leftovers
from tests.support.oci_layout import BUSYBOX_CONFIG, HOST_PLATFORM, Layout, busybox_layers
from tests.support.tar_entries import Entry, device, file

ORDER = AllocationId("alo_" + "7" * 20)


class Images:
    """A layer store with prepared variants, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = FolderBlobs(folder / "blobs")
        self.layers = LayerStore(folder / "store", self.blobs)
        self.layers.sweep()

    def variant(self, name: str, entries: list[Entry], **config: Any) -> Variant:
        """The variant of busybox with these entries on top, prepared."""
        layout = self.folder / "layouts" / name
        if not layout.exists():
            Layout(layout).image([*busybox_layers(), entries], {**BUSYBOX_CONFIG, **config})
        platform = Platform.parse(HOST_PLATFORM)
        assert platform is not None
        source = LayoutSource(lambda: FolderTree(layout))
        (found,) = source.read(Wanted([platform]), self.blobs, lambda _: None)
        self.layers.prepare(found, silent)
        return found

    def plain(self) -> Variant:
        return self.variant("plain", [file("etc/which", b"plain")])

    def devices(self) -> Variant:
        """Device nodes of the host's first disk and of its memory."""
        return self.variant("devices", [device("blk", *_first_disk(), kind=b"4"), device("mem", 1, 1)])


def _first_disk() -> tuple[int, int]:
    number = Path("/").stat().st_dev
    return os.major(number), os.minor(number)


@dataclass
class Ran:
    exit: Exit
    stdout: bytes
    stderr: bytes


class Installation:
    """A provider on folders of its own, over the images' store."""

    def __init__(self, images: Images, home: Path | None = None, **settings: Any) -> None:
        self.images = images
        # Not below pytest's own folder: sandboxes have to be able to walk to it.
        self.home = home or Path(tempfile.mkdtemp(prefix="sandbay-real-", dir="/var/tmp"))
        self.run_folder = Path("/run") / self.home.name
        self.label = f"ins_{self.home.name.replace('-', '').replace('_', '')}"
        self.settings = OciSettings(**settings)
        self.provider = self.opened()

    def opened(self) -> OciProvider:
        return OciProvider(self.home, self.run_folder, self.images.layers, self.label, self.settings)

    def start(self, variant: Variant, **changes: Any) -> AllocationId:
        order = order_for(variant, **changes)
        self.provider.create(order)
        return order.allocation

    def run(self, allocation: AllocationId, line: str, **asked: Any) -> Ran:
        heard: dict[Stream, bytearray] = {stream: bytearray() for stream in Stream}
        command = Command(shell=line, **({"timeout": 30.0} | asked))
        ended = self.provider.exec(allocation, command, emit=lambda stream, data: heard[stream].extend(data))
        return Ran(ended, bytes(heard[Stream.STDOUT]), bytes(heard[Stream.STDERR]))

    def processes(self, allocation: AllocationId) -> list[str]:
        """Command lines of everything in the sandbox but its init, as the host sees them."""
        groups = Groups(self.provider._cgroups, self.provider._places(allocation).sandbox.group)
        first = groups.init_pid()
        pids = [int(pid) for path in groups.members.rglob("cgroup.procs") for pid in path.read_text().split()]
        lines = []
        for pid in {*pids, *_pids(groups.members)} - {first}:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended while we looked
                lines.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
        return lines

    def left(self) -> dict[str, list[str]]:
        """What the host shows of this installation, its own durable folder apart."""
        return leftovers(self.label, [self.run_folder])

    def end(self) -> None:
        for allocation in self.provider.list_allocations():
            self.provider.destroy(allocation)
        self.provider.close()
        left = self.left()
        assert not self.run_folder.exists()
        shutil.rmtree(self.home)
        assert left == {}


def _pids(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()] if folder.exists() else []


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying_before(function: Callable[..., object]) -> Callable[..., object]:
    return _die


def _dying_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def both(*arguments: Any, **named: Any) -> None:
        function(*arguments, **named)
        _die()

    return both


STEPS: dict[str, tuple[object, str, Callable[[Callable[..., object]], Callable[..., object]]]] = {
    "before-record": (AllocationFolders, "add", _dying_before),
    "after-record": (AllocationFolders, "add", _dying_after),
    "before-mounts": (rootfs, "assemble", _dying_before),
    "after-mounts": (rootfs, "assemble", _dying_after),
    "after-group": (Groups, "make", _dying_after),
    "after-program": (Resident, "place", _dying_after),
    "before-runtime": (Reaping, "call", _dying_before),
    "after-runtime": (Reaping, "call", _dying_after),
    "before-started": (AllocationFolders, "mark_started", _dying_before),
    "after-started": (AllocationFolders, "mark_started", _dying_after),
    "destroy-after-kill": (Groups, "kill", _dying_after),
    "destroy-after-groups": (Groups, "remove", _dying_after),
    "destroy-after-mounts": (rootfs, "dismantle", _dying_after),
    "destroy-before-record": (AllocationFolders, "remove", _dying_before),
    "destroy-done": (Freer, "free", _dying_after),
}


NETWORK_STEPS: dict[str, tuple[object, str, Callable[[Callable[..., object]], Callable[..., object]]]] = {
    "before-attach": (SandboxNetwork, "attach", _dying_before),
    "after-subnet": (SandboxNetwork, "_configure", _dying_after),
    "after-rules": (SandboxNetwork, "_ensure", _dying_after),
    "after-cni": (network, "_cni", _dying_after),
    "after-attach": (SandboxNetwork, "attach", _dying_after),
    "destroy-before-detach": (SandboxNetwork, "_detach", _dying_before),
    "destroy-after-cni": (network, "_cni", _dying_after),
    "destroy-before-remove": (SandboxNetwork, "_remove", _dying_before),
    "destroy-within-remove": (SandboxNetwork, "_await_ports", _dying_after),
    "destroy-before-rules": (network, "remove_rules", _dying_before),
    "destroy-before-leases": (shutil, "rmtree", _dying_before),
    "destroy-after-leases": (shutil, "rmtree", _dying_after),
    "destroy-after-remove": (SandboxNetwork, "_remove", _dying_after),
}
"""As `STEPS`, of an allocation that has a network."""

CHANGE_STEPS: dict[str, tuple[object, str, Callable[[Callable[..., object]], Callable[..., object]]]] = {
    "before-release": (network, "_cni", _dying_before),
    "after-release": (network, "_cni", _dying_after),
    "before-files": (network, "_fill", _dying_before),
    "after-files": (network, "_fill", _dying_after),
    "before-end": (SandboxNetwork, "_remove", _dying_before),
    "within-end": (SandboxNetwork, "_await_ports", _dying_after),
    "after-end": (SandboxNetwork, "_remove", _dying_after),
    "before-attach": (SandboxNetwork, "_attach", _dying_before),
    "after-subnet": (SandboxNetwork, "_configure", _dying_after),
    "after-rules": (SandboxNetwork, "_ensure", _dying_after),
    "before-guard": (network, "_is_port", _dying_before),
    "after-attach": (SandboxNetwork, "_attach", _dying_after),
}
"""Of a sandbox that loses its network and gets it again."""


def order(images: Images, mode: Network = Network.DISABLED, setup: Network | None = None) -> Order:
    """The one order that a dying node works on."""
    return order_for(images.plain(), allocation=ORDER, network=mode, setup_network=setup)


def live_and_die(installation: Installation, step: str) -> None:
    """Work on the order until the step at which the node dies."""
    if step == "running":
        installation.provider.create(order(installation.images))
        installation.run(ORDER, "sleep 4401 & echo kept")
        waiting = {"timeout": None}
        threading.Thread(target=installation.run, args=(ORDER, "echo up >up; sleep 4402"), kwargs=waiting).start()
        while b"up" not in installation.run(ORDER, "cat up").stdout:
            pass
        _die()
    if step.startswith("change:"):
        installation.provider.create(order(installation.images, Network.ENABLED, Network.DISABLED))
        owner, name, dying = CHANGE_STEPS[step.removeprefix("change:")]
        installation.provider.set_network(ORDER, Network.ENABLED)
        setattr(owner, name, dying(getattr(owner, name)))
        installation.provider.set_network(ORDER, Network.DISABLED)
        installation.provider.set_network(ORDER, Network.ENABLED)
    networked = step.startswith("network:")
    owner, name, dying = NETWORK_STEPS[step.removeprefix("network:")] if networked else STEPS[step]
    wanted = order(installation.images, Network.ENABLED if networked else Network.DISABLED)
    if step.removeprefix("network:").startswith("destroy"):
        installation.provider.create(wanted)
        setattr(owner, name, dying(getattr(owner, name)))
        installation.provider.destroy(ORDER)
    setattr(owner, name, dying(getattr(owner, name)))
    installation.provider.create(wanted)


if __name__ == "__main__":
    live_and_die(Installation(Images(Path(sys.argv[1])), Path(sys.argv[2])), sys.argv[3])
