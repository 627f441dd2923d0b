"""Start, find and stop the process that serves an installation on this host."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Protocol

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.entrypoints.lock import InstallationLock
from sandbay.entrypoints.settings import DATABASE_VARIABLE, LOOPBACK, Settings

_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_TAIL_LINES = 12


def running(settings: Settings) -> int | None:
    """The pid that serves this installation, or None."""
    return InstallationLock(settings.lock).holder()


def serve(settings: Settings) -> None:
    """Serve Core and a node in this process until a signal says to stop. Refuses when another process does."""
    check_root()
    _serve(settings, _embedded)


def serve_core(settings: Settings) -> None:
    """The same without a node. Several may serve one PostgreSQL database, each with a home of its own."""
    if settings.database_url is None:
        message = f"say which database: --database URL, or {DATABASE_VARIABLE} in the environment"
        raise RefusedError(Reason.INVALID_BODY, message, param="database")
    _serve(settings, _core)


class _Serving(Protocol):
    def start(self) -> None: ...
    def serve(self, listener: socket.socket) -> None: ...
    def close(self) -> None: ...


def _embedded(settings: Settings) -> _Serving:
    from sandbay.entrypoints.embedded import Embedded  # the server's imports cost a second

    return Embedded(settings)


def _core(settings: Settings) -> _Serving:
    from sandbay.entrypoints.core import CoreProcess

    return CoreProcess(settings)


def _serve(settings: Settings, make: Callable[[Settings], _Serving]) -> None:
    from sandbay.entrypoints.logs import configure

    settings.home.mkdir(mode=0o711, parents=True, exist_ok=True)
    # The port first: whoever sees us hold the lock may believe what answers there.
    listener = listen(settings.port)
    lock = InstallationLock(settings.lock).take()
    if lock is None:
        raise RefusedError(
            Reason.IN_USE, f"{settings.home} is served by process {running(settings)}; `sandbay down` stops it"
        )
    configure()
    serving = make(settings)
    try:
        serving.start()
        serving.serve(listener)
    finally:
        serving.close()
        lock.release()


def listen(port: int) -> socket.socket:
    """The bound socket. Refuses when another program has the port."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        message = f"port {port} of {LOOPBACK} cannot be used ({error.strerror}); choose another one with --port"
        raise RefusedError(Reason.IN_USE, message, param="port") from error
    return listener


def start_detached(settings: Settings) -> int:
    """Start a process of its own and return its pid once `/readyz` is good. One that runs already is fine."""
    check_root()
    pid = running(settings)
    if pid is not None and _ready(settings):
        return pid
    settings.log.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "sandbay.entrypoints.main", "up", "--port", str(settings.port)]
    with settings.log.open("ab") as log:
        start = log.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={**os.environ, **settings.environment},
        )
    deadline = time.monotonic() + _START_SECONDS
    while not _ready(settings) or running(settings) != process.pid:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            said = _tail(settings.log, start)
            message = f"sandbay did not start; {settings.log} ends with: {said[0] if said else 'nothing'}"
            raise RefusedError(Reason.HOST_UNFIT, message, details={"log": said})
        time.sleep(0.05)
    return process.pid


def stop(settings: Settings, *, keep_sessions: bool) -> int | None:
    """Stop what `up` started, its Sessions too unless they are kept; the pid, or None when nothing ran."""
    pid = running(settings)
    if pid is None:
        return None
    os.kill(pid, signal.SIGTERM if keep_sessions else signal.SIGINT)
    if not InstallationLock(settings.lock).wait_free(_STOP_SECONDS):
        raise RefusedError(Reason.TIMED_OUT, f"process {pid} is still stopping; see {settings.log}")
    return pid


def check_root() -> None:
    """Mounts and user namespaces need root."""
    if os.geteuid() != 0:
        raise RefusedError(Reason.HOST_UNFIT, "sandboxes need root on this host; run it with sudo")


def _ready(settings: Settings) -> bool:
    asked = HTTPConnection(LOOPBACK, settings.port, timeout=2)
    try:
        asked.request("GET", "/readyz")
        return asked.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        asked.close()


def _tail(path: Path, start: int) -> list[str]:
    with path.open("rb") as log:
        log.seek(start)
        return log.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]
