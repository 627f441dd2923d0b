"""A TCP proxy on loopback that can be away, or cut what is sent through it.

with CuttingProxy(registry.host) as proxy:
    proxy.cuts = [100_000]     # the next connection that sends so many bytes upstream ends there
    proxy.away = True          # connections end before anything is passed on
"""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class CuttingProxy:
    """Serving while it is entered. `sent` counts the bytes that were passed upstream."""

    def __init__(self, to: str) -> None:
        host, _, port = to.rpartition(":")
        self._to = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts: list[int] = []
        self.away = False
        self.sent = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()
        for thread in self._threads:
            thread.join()
        for each in self._open:
            each.close()

    def drop(self) -> None:
        """End every connection."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                down = self._listener.accept()[0]
            except OSError:
                return
            if self.away:
                down.close()
                continue
            up = socket.create_connection(self._to)
            with self._lock:
                self._open |= {up, down}
            for way in ((down, up, True), (up, down, False)):
                thread = threading.Thread(target=self._pass, args=way)
                thread.start()
                self._threads.append(thread)

    def _pass(self, source: socket.socket, sink: socket.socket, upstream: bool) -> None:  # noqa: FBT001
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if upstream:
                    passed += len(data)
                    if self.cuts and passed > self.cuts[0]:
                        self.cuts.pop(0)
                        break
                    with self._lock:
                        self.sent += len(data)
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
