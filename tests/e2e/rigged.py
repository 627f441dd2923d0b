"""An installation in this process whose real provider can be told to misbehave."""

import threading
from dataclasses import dataclass, replace
from typing import Any

from sandbay.domain.allocation import Booted, Order
from sandbay.entrypoints.embedded import Embedded
from sandbay.entrypoints.providers import open_provider
from sandbay.entrypoints.service import listen
from sandbay.entrypoints.settings import Settings
from tests.e2e.installation import Installation


class RiggedProvider:
    """The real provider, but prepares wait for `hold`, and `boots` comes up whatever was ordered."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.hold = threading.Event()
        self.hold.set()
        self.boots: str | None = None
        self._orders: dict[str, Order] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def prepare(self, variant: Any, progress: Any) -> None:
        self.hold.wait(60)
        self._real.prepare(variant, progress)

    def create(self, order: Order) -> Booted:
        self._orders[order.frozen.image_name] = order
        if self.boots is not None:
            other = self._orders[self.boots].frozen
            order = replace(order, frozen=replace(order.frozen, artifacts=other.artifacts, digest=other.digest))
        booted: Booted = self._real.create(order)
        return booted


@dataclass(frozen=True)
class Rigged:
    """The installation and its provider."""

    house: Installation
    provider: RiggedProvider


class InProcess:
    """Serves an `Installation`'s folders from this process instead of `sandbay up`."""

    def __init__(self, house: Installation, monkeypatch: Any) -> None:
        rig: list[RiggedProvider] = []

        def open_rigged(*arguments: Any) -> Any:
            rig.append(RiggedProvider(open_provider(*arguments)))
            return rig[0]

        monkeypatch.setattr("sandbay.entrypoints.local_node.open_provider", open_rigged)
        self._embedded = Embedded(Settings(house.home, house.run, house.port))
        self._embedded.start()
        self._server = self._embedded.http()
        self._thread = threading.Thread(target=self._server.run, args=([listen(house.port)],))
        self._thread.start()
        self.provider = rig[0]

    def close(self) -> None:
        self._embedded.end_sessions()
        self._server.should_exit = True
        self._thread.join()
        self._embedded.close()
