"""What a provider's tests hand to the provider suite."""

import contextlib
import itertools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import pytest

from sandbay.domain.allocation import Order
from sandbay.domain.command import Command
from sandbay.domain.deployment import MIB, SandboxSize
from sandbay.domain.errors import RefusedError
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import AllocationId, ImageId, ReleaseId, SessionId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.domain.trail import DecidedBy, Level
from sandbay.ports.provider import Exit, OnStart, PrepareProgress, Provider, Stream

GENEROUS = 30.0
"""Seconds within which anything ends that does not hang."""


class Offer(StrEnum):
    """What a harness has beyond the port. A skip names the offer that is missing."""

    SHELL = "real programs: a POSIX shell, processes, /proc"
    HOST_VIEW = "processes that the host can see by `Booted.host_pid`"


@dataclass(frozen=True)
class Variants:
    """Small images.

    All: /bin with true, false, echo, cat, head, sleep, env, id, pwd, ln, touch, stty; root and agent (1000); /tmp;
    PATH=/bin in the environment. `web` and `data` have sh and say `web` and `data` in /etc/which, /etc/script
    (0755) is a script whose interpreter is missing. `web` sets WEB=1, runs as root, and has entrypoint `echo E`
    and cmd `C`. `data` runs as agent in /srv/deep, which its layers lack. `shellless` is `web` without /bin/sh.
    `damaged` cannot be verified: one of its bytes is not what its digest says.
    """

    web: Variant
    data: Variant
    shellless: Variant
    damaged: Variant


class ProviderHarness(Protocol):
    """One provider with its state, made new for each test and removed after it."""

    provider: Provider
    variants: Variants
    offers: frozenset[Offer]

    def restart(self) -> None:
        """Replace `provider` by a new one on the same state, as after kill -9 of the node."""

    def trace_of(self, variant: Variant) -> object:
        """A value that changes whenever the variant's bytes are unpacked anew."""

    def kill(self, allocation: AllocationId) -> None:
        """End the sandbox's first process behind the provider's back."""


SMALL = SandboxSize(cpus=1.0, memory=128 * MIB, pids=64)
_numbers = itertools.count(1)


def order_for(variant: Variant, **changes: Any) -> Order:
    """An order for a fresh allocation of a Session of its own; `changes` are fields of Order."""
    number = f"{next(_numbers):020d}"
    frozen = FrozenRelease(
        image=ImageId("img_" + number),
        image_name="suite",
        reference="suite",
        release=ReleaseId("rel_" + number),
        number=1,
        platform=variant.platform,
        artifacts=variant.artifacts,
        providers=variant.providers,
        digest=variant.digest,
        index_digest=variant.index_digest,
        source_commit=None,
        size=variant.size,
        generation=1,
        decided_by=DecidedBy(Level.SESSION),
        trail=(),
    )
    fields: dict[str, Any] = {
        "allocation": AllocationId("alo_" + number),
        "session": SessionId("ses_" + number),
        "frozen": frozen,
        "size": SMALL,
    }
    return Order(**(fields | changes))


@dataclass
class Ran:
    """What a command said and how it ended."""

    exit: Exit
    stdout: bytes
    stderr: bytes

    @property
    def code(self) -> int:
        return self.exit.code

    @property
    def lines(self) -> list[str]:
        return self.stdout.decode().splitlines()


@dataclass
class Sandbox:
    """A running allocation."""

    harness: ProviderHarness
    allocation: AllocationId

    def run(
        self,
        *argv: str,
        stdin: Iterable[bytes] = (),
        cancel: threading.Event | None = None,
        on_start: OnStart | None = None,
        heard: threading.Event | None = None,
        **asked: Any,
    ) -> Ran:
        """Run to the end; without argv and `shell`, the image's command. `heard` is set at the first output."""
        said: dict[Stream, list[bytes]] = {stream: [] for stream in Stream}

        def emit(stream: Stream, data: bytes) -> None:
            said[stream].append(bytes(data))
            if heard is not None:
                heard.set()

        ended = self.harness.provider.exec(
            self.allocation,
            Command(argv=argv or None, **({"timeout": GENEROUS} | asked)),
            stdin=stdin,
            emit=emit,
            cancel=cancel,
            on_start=on_start,
        )
        return Ran(ended, b"".join(said[Stream.STDOUT]), b"".join(said[Stream.STDERR]))

    def sh(self, line: str, **asked: Any) -> Ran:
        """Run a shell line."""
        return self.run(shell=line, **asked)


def silent(_: PrepareProgress) -> None:
    """Nobody watches this prepare."""


def start(harness: ProviderHarness, variant: Variant, **changes: Any) -> Sandbox:
    """Prepare a variant and start an allocation of it."""
    harness.provider.prepare(variant, silent)
    order = order_for(variant, **changes)
    harness.provider.create(order)
    return Sandbox(harness, order.allocation)


def needs(harness: ProviderHarness, offer: Offer) -> None:
    """Skip when the harness lacks something, by name."""
    if offer not in harness.offers:
        pytest.skip(f"this provider's harness has no {offer.value}")


@contextlib.contextmanager
def refused(reason: Reason) -> Iterator[None]:
    """The block is refused by exactly this reason."""
    with pytest.raises(RefusedError) as caught:
        yield
    assert caught.value.refusal.reason is reason, caught.value
