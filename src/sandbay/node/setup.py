"""The initialisation of one sandbox: applies the steps of `flow.initialise`, and tells how far it is."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import structlog

from sandbay.domain.allocation import Order
from sandbay.domain.command import Command
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault
from sandbay.domain.setup import OUTPUT_BYTES, SetupProgress
from sandbay.flow.initialise import LayOut, SetupStep
from sandbay.ports.provider import Exit, Provider, Stream

_EXECUTABLE, _PLAIN = 0o755, 0o644
_NOT_FOUND = frozenset({126, 127})

Tell = Callable[[SetupProgress], object]
"""Told how far it is. What becomes of that is nothing to the setup."""

log = structlog.get_logger()


class StoppedError(Exception):
    """Somebody wants the setup to end: what is half done is of no use to anybody."""


class Setup:
    """One run through the steps, in a fresh sandbox. `stop` may come at any moment, from any thread."""

    def __init__(self, provider: Provider, order: Order, env: Mapping[str, str], tell: Tell) -> None:
        """Nothing is done before `run`. `env`: variables of every program, below those of its own step."""
        self._provider, self._order, self._env, self._tell = provider, order, env, tell
        self._cancel = threading.Event()
        self._deadline = time.monotonic() + order.setup_seconds
        self._progress: SetupProgress | None = None
        self._tail = bytearray()
        self._told = 0
        self._printed = 0

    def stop(self) -> None:
        """End what runs. `run` then raises StoppedError."""
        self._cancel.set()

    def tell(self) -> None:
        """Say how far it is, when there is something new to say."""
        progress, printed = self._progress, self._printed
        if progress is None or printed == self._told:
            return
        self._told = printed
        try:
            self._tell(progress.printed(bytes(self._tail)))
        except Exception:
            log.exception("nobody could be told how far a setup is", allocation=self._order.allocation)

    def run(self, steps: Iterable[SetupStep]) -> Fault | None:
        """All steps in order; the first that fails is the fault, with what it printed. Raises StoppedError."""
        planned = tuple(steps)
        for number, step in enumerate(planned, 1):
            self._tail.clear()
            self._progress = SetupProgress(number, len(planned), step.doing)
            self._printed += 1
            self.tell()
            try:
                fault = self._lay_out(step) if isinstance(step, LayOut) else self._run(step.command, step.tool)
            except RefusedError as error:
                fault = _of_refusal(error)
            if self._cancel.is_set():
                raise StoppedError
            if fault is not None:
                return self._pointing(fault)
        return None

    def _lay_out(self, step: LayOut) -> Fault | None:
        files = self._provider.files(self._order.allocation)
        for file in step.files:
            if self._cancel.is_set():
                break
            files.write(file.path, [file.data], _EXECUTABLE if file.executable else _PLAIN)
        return None

    def _run(self, command: Command, tool: str | None) -> Fault | None:
        if tool is not None and self._exec(replace(command, argv=(tool, "--version"))).code in _NOT_FOUND:
            message = f"the image has no {tool}; choose one that has, and say so with requires"
            return Fault(Reason.SETUP_FAILED, message, {"missing": tool})
        self._tail.clear()
        ended = self._exec(command)
        if ended.timed_out:
            limit = self._order.setup_seconds
            return Fault(Reason.SETUP_FAILED, f"the setup took longer than {limit:g} s", {"seconds": limit})
        if ended.code:
            return Fault(Reason.SETUP_FAILED, f"a step ended with exit code {ended.code}", {"exit_code": ended.code})
        return None

    def _exec(self, command: Command) -> Exit:
        left = max(self._deadline - time.monotonic(), 0.001)
        command = replace(command, timeout=left, env={**self._env, **command.env})
        return self._provider.exec(self._order.allocation, command, emit=self._keep, cancel=self._cancel)

    def _keep(self, _: Stream, chunk: bytes) -> None:
        self._tail += chunk
        del self._tail[:-OUTPUT_BYTES]
        self._printed += 1

    def _pointing(self, fault: Fault) -> Fault:
        progress = self._progress
        if progress is None:
            return fault
        at = progress.printed(bytes(self._tail))
        where = {"step": at.step, "steps": at.steps, "doing": at.doing, "output": at.output}
        return replace(fault, message=f"{fault.message} ({at.doing})", details={**fault.details, **where})


def _of_refusal(error: RefusedError) -> Fault:
    """A sandbox that is gone has not refused anything."""
    refusal = error.refusal
    if refusal.reason is Reason.NOT_RUNNING:
        return Fault(Reason.START_FAILED, "the sandbox ended while it was prepared")
    return Fault(refusal.reason, refusal.message, refusal.details)
