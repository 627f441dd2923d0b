"""What runs sandboxes, as a node sees it. `tests/contracts/provider_suite.py` is this contract, executable.

Contract: an image that is not here is `image_absent_on_node`, never a pull at create and never another
image. An unknown outcome is not "no": ownership is kept and looked at again. Everything made carries the
installation's label; what does not is never touched. `prepare`, `create`, `destroy`, `remove` may be repeated.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from signal import Signals
from typing import BinaryIO, Protocol

from sandbay.domain.allocation import Booted, Order, Presence
from sandbay.domain.command import Command, TerminalSize, User
from sandbay.domain.declaration import Declaration, Network
from sandbay.domain.disk import Disk, DiskBudget
from sandbay.domain.ids import AllocationId, SnapshotId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Variant
from sandbay.ports.blobs import Blobs


class Phase(StrEnum):
    """What a prepare is doing."""

    FETCH = "fetch"
    UNPACK = "unpack"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class PrepareProgress:
    """Bytes of the image's blobs: done, and in all."""

    phase: Phase
    bytes_done: int
    bytes_total: int


Progress = Callable[[PrepareProgress], None]


class Stream(StrEnum):
    """Where a chunk of output came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


Emit = Callable[[Stream, bytes], None]
"""Takes each chunk of output, in order per stream. When it raises, the command's whole tree is killed."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended: its exit code, 128+n for signal n, 126, 127; or it was stopped at its time-out."""

    code: int
    timed_out: bool = False


class Steering(Protocol):
    """What can be done to a command while it runs. Safe from any thread; after the command's end it does nothing."""

    def resize(self, size: TerminalSize) -> None:
        """Its terminal has this size now; without a terminal it does nothing."""

    def signal(self, number: Signals) -> None:
        """Send it to every process of the command's tree."""


OnStart = Callable[[Steering], None]
"""Called once, when the program runs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a host has or lacks. `fatal` means that nothing can run without it.

    `says` is what was seen, `do` what to do about it, the package to install for example.
    """

    name: str
    ok: bool
    says: str
    reason: Reason | None = None
    fatal: bool = True
    do: str = ""


class FileKind(StrEnum):
    """What is at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Names are text, undecodable bytes as surrogate escapes. Size in bytes, mtime in seconds."""

    name: str
    kind: FileKind
    size: int
    mode: int
    uid: int
    gid: int
    mtime: float
    target: str | None = None


class Files(Protocol):
    """The files of one running sandbox. Relative paths start at /workspace; none leaves the sandbox's root.

    Refuses with `path_not_found`, `path_invalid`, `limit_exceeded`, `no_space`.
    """

    def stat(self, path: str) -> FileEntry:
        """What is at a path, links not followed at its end."""

    def list(self, path: str) -> Sequence[FileEntry]:
        """The entries of a folder, by name."""

    def read(self, path: str) -> BinaryIO:
        """A regular file's bytes."""

    def write(self, path: str, chunks: Iterable[bytes], mode: int | None = None) -> None:
        """Replace a file in one step; missing parents are made. Owned by the image's user."""

    def make_folder(self, path: str) -> None:
        """Make a folder and its missing parents."""

    def move(self, source: str, target: str) -> None:
        """Rename within the sandbox."""

    def remove(self, path: str) -> None:
        """Remove a file, a link, or a folder with all below it."""


class Trial(Protocol):
    """A sandbox of a variant that is there to be looked at, and is gone afterwards. It has no network."""

    @property
    def user(self) -> User:
        """The image's user, by the image's own files."""

    @property
    def workdir(self) -> str:
        """Where commands begin."""

    def find(self, program: str) -> str | None:
        """Where the image's PATH leads for this name; None when there is nothing that the user may execute."""

    def exec(self, command: Command, *, emit: Emit) -> Exit:
        """As `Provider.exec`."""


@dataclass(frozen=True, slots=True)
class SnapshotHeld:
    """Kept state that is here whole."""

    id: SnapshotId
    bytes: int


class Provider(Protocol):
    """One kind of provider with one runtime on one host."""

    @property
    def declaration(self) -> Declaration:
        """What this provider can do here."""

    @property
    def runtime(self) -> str:
        """The one runtime it runs sandboxes with; what it proves, it proves for that."""

    def check(self) -> Sequence[Finding]:
        """Is this host fit? Each probe has a time limit."""

    def prepare(self, variant: Variant, progress: Progress) -> None:
        """Fetch, verify, unpack, commit. Idempotent and resumable; concurrent calls join.

        Refuses with reasons of the groups content, transfer, room, or `host_unfit`.
        """

    def verify(self, variant: Variant, read: Callable[[int], None]) -> None:
        """Compare every byte that is here of a variant with the installation's blobs; `read` hears of their bytes.

        Refuses with `image_absent_on_node`, and with `content_lost` what is damaged: it is not held any more, what runs
        from it runs on, and `prepare` makes it anew. What kept it from being looked at is refused by its own reason, of
        the groups content (the blobs themselves), transfer or room, and says nothing of what is here.
        """

    def probe(self, variant: Variant) -> None:
        """Start a real sandbox from the variant and destroy it. Refuses with the reason why it does not start.

        With a reason of the group content where no other node would start it either, `not_an_image` among them.
        """

    def trial(self, variant: Variant) -> AbstractContextManager[Trial]:
        """A sandbox of the variant as its config wants it, until the block ends.

        Refuses as `create`, and with `user_not_found`, `invalid_workdir` where none boots as the config says.
        """

    def held(self) -> Sequence[ContentKey]:
        """What is here whole, by commit record."""

    def disk(self) -> Disk | None:
        """All image bytes that it keeps here, and what they may take; None where they are not its own to let go.

        Cheap: asked for every second.
        """

    def create(self, order: Order) -> Booted:
        """Start an allocation, with the first of its networks; returns when a no-op exec has succeeded.

        Repeating it returns the same sandbox, as it is by then.
        Refuses with `image_absent_on_node`, `start_failed`, `network_unsupported`, `resource_unsupported`.
        """

    def set_network(self, allocation: AllocationId, mode: Network) -> None:
        """Give a running sandbox this one of its order's networks and no other, before it returns.

        What the former reached is cut, connections and what runs in the background included. Idempotent, after a
        crash too; one that has the mode already keeps its connections.
        Refuses with `not_running`, `network_unsupported` (the order does not name it), `start_failed`.
        """

    def booted(self, allocation: AllocationId) -> Booted:
        """The identity read back from the running thing. Refuses with `not_running`."""

    def presence(self, allocation: AllocationId) -> Presence:
        """What is there of it now."""

    def exec(
        self,
        allocation: AllocationId,
        command: Command,
        *,
        stdin: Iterable[bytes] = (),
        emit: Emit,
        cancel: threading.Event | None = None,
        on_start: OnStart | None = None,
    ) -> Exit:
        """Run a command to its end, in the calling thread. Setting `cancel` kills its whole tree.

        Refuses with `not_running`, `user_not_found`, `no_command`, `no_shell`, `invalid_workdir`.
        """

    def files(self, allocation: AllocationId) -> Files:
        """The sandbox's files. Refuses with `not_running`."""

    def destroy(self, allocation: AllocationId) -> None:
        """End it and free everything of it. An unknown allocation is fine."""

    def suspend(self, allocation: AllocationId, snapshot: SnapshotId) -> SnapshotHeld:
        """Stop it and keep its workspace and writable layer, never its memory, under this id; it is then gone.

        Idempotent: what is kept under the id already is told again. One that has exited is kept as well. Order.snapshot
        starts from it, as often as wanted, until it is dropped. Ability `suspend`; refuses with `not_running`.
        """

    def drop_snapshot(self, snapshot: SnapshotId) -> None:
        """Let go of kept state. An unknown one is fine."""

    def list_allocations(self) -> Sequence[AllocationId]:
        """What of this installation is here, running or in pieces; for adoption after a crash."""

    def uphold(self) -> None:
        """Look whether what confines the sandboxes is still in place, and put back what somebody took away.

        Called again and again by the node; cheap where there is nothing to do.
        """

    def close(self) -> None:
        """Let go of the host's things that are not sandboxes; sandboxes run on."""

    def remove(self, key: ContentKey) -> None:
        """Drop the variant's bytes that nothing else shares. Refuses with `in_use` while an allocation has it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What an administrator says of the network of sandboxes.

    `allowed`: addresses and networks (CIDR) that they reach although these would be denied. `nameservers`: whom
    they ask for names; those of the host when empty. All IPv4, well-formed.
    """

    allowed: Sequence[str] = ()
    nameservers: Sequence[str] = ()


@dataclass(frozen=True)
class ProviderPlace:
    """Where a provider works: a durable and a volatile folder of its own, the installation's blobs and its label.

    `budget`: what the images may take of the node's disk. `limits`: bounds on one image, by name, where the operator
    wants others than the usual ones. `runtime`: the one that was asked for; `auto` leaves it to the adapter, which
    refuses with `host_unfit` one that cannot run sandboxes here.
    """

    home: Path
    run: Path
    blobs: Blobs
    installation: str
    reach: Reach = field(default_factory=Reach)
    budget: DiskBudget = field(default_factory=DiskBudget)
    limits: Mapping[str, int] = field(default_factory=dict)
    runtime: str = "auto"


@dataclass(frozen=True)
class ProviderAdapter:
    """What the entry points of group `sandbay.providers` name: a declaration to read, and how to open the provider."""

    declaration: Declaration
    open: Callable[[ProviderPlace], Provider]
