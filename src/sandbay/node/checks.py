"""The agent's half of contract checks: a sandbox of the variant is started and each tool is asked for its version.

What an image does is hostile: it is given a time, and listened to only so far. What the host does not manage says
nothing of the image: it is told as a fault, and tried again when Core asks again, a while later.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta

import structlog

from sandbay.domain.command import Command
from sandbay.domain.contract import (
    CheckLimits,
    CheckOrder,
    ContractReport,
    Heard,
    ToolReport,
    argv_of_tool,
    judge_tool,
)
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ReleaseId
from sandbay.domain.readiness import retry_after
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault
from sandbay.ports.clock import Clock
from sandbay.ports.node_link import CheckOutcome
from sandbay.ports.provider import Exit, Provider, Stream, Trial

_WORKERS = 2
_REST = timedelta(minutes=1)
_KILLED = 137
_LIMITS = CheckLimits()
_GONE = frozenset({Reason.CONTENT_LOST, Reason.IMAGE_ABSENT_ON_NODE})
_OF_THE_IMAGE = frozenset({Reason.USER_NOT_FOUND, Reason.INVALID_WORKDIR})
_SHELL = "exit 0"

Report = Callable[[CheckOutcome], bool]
"""Tells Core; False when it was refused."""

Lost = Callable[[ContentKey, Fault], None]
"""Told when a start found that the image's bytes are damaged or gone."""

log = structlog.get_logger()


class CheckRunner:
    """Checks under way, each once; and when those that failed for the host may be tried again."""

    def __init__(self, provider: Provider, clock: Clock, report: Report, lost: Lost) -> None:
        """Nothing is checked until `start`."""
        self._provider, self._clock, self._report, self._lost = provider, clock, report, lost
        self._lock = threading.Lock()
        self._busy: set[tuple[ReleaseId, ContentKey]] = set()
        self._resting: dict[tuple[ReleaseId, ContentKey], tuple[int, int, datetime]] = {}
        self._work = ThreadPoolExecutor(_WORKERS, "sandbay-check")

    def start(self, order: CheckOrder) -> None:
        """Check, unless that is under way or has failed a moment ago."""
        name = (order.release, order.variant.content_key)
        with self._lock:
            number, _, until = self._resting.get(name, (0, 0, self._clock.now()))
            if name in self._busy or (number == order.number and self._clock.now() < until):
                return
            self._busy.add(name)
        with suppress(RuntimeError):  # closing: the next agent is asked again
            self._work.submit(self._one, order)

    def close(self) -> None:
        """Take no more work; what runs ends by itself or with the process."""
        self._work.shutdown(wait=False, cancel_futures=True)

    def _one(self, order: CheckOrder) -> None:
        name = (order.release, order.variant.content_key)
        try:
            outcome = self._outcome(order)
            if outcome.fault is not None:
                self._rest(order, outcome.fault)
            if not self._report(outcome):
                log.info("core has no use for this check any more", release=order.release, check=order.number)
        except Exception:
            log.exception("the outcome of a check could not be told", release=order.release)
        finally:
            with self._lock:
                self._busy.discard(name)

    def _outcome(self, order: CheckOrder) -> CheckOutcome:
        try:
            return CheckOutcome(order, report=check(self._provider, order, self._clock))
        except RefusedError as error:
            fault = Fault(error.refusal.reason, error.refusal.message, error.refusal.details)
            if fault.reason in _GONE:
                self._lost(order.variant.content_key, fault)
        except Exception:
            log.exception("a check failed", release=order.release)
            fault = Fault(Reason.INTERNAL, "a fault on the node; its log says more")
        return CheckOutcome(order, fault=fault)

    def _rest(self, order: CheckOrder, fault: Fault) -> None:
        name = (order.release, order.variant.content_key)
        with self._lock:
            number, tries, _ = self._resting.get(name, (order.number, 0, self._clock.now()))
            tries = tries + 1 if number == order.number else 1
            delay = retry_after(fault.reason, tries) or _REST
            self._resting[name] = (order.number, tries, self._clock.now() + delay)


def check(provider: Provider, order: CheckOrder, clock: Clock, limits: CheckLimits = _LIMITS) -> ContractReport:
    """Start a sandbox and look. Refuses with what the host could not do; what the image cannot is in the report."""
    try:
        with provider.trial(order.variant) as trial:
            end = clock.monotonic() + limits.seconds
            return ContractReport(
                boots=True,
                shell=_has_shell(trial, limits.tool_seconds),
                user=trial.user.name or str(trial.user.uid),
                uid=trial.user.uid,
                gid=trial.user.gid,
                home=trial.user.home,
                workdir=trial.workdir,
                tools={
                    name: _ask(trial, command, min(limits.tool_seconds, end - clock.monotonic()), limits.output_bytes)
                    for name, command in order.tools.items()
                },
            )
    except RefusedError as error:
        refusal = error.refusal
        if refusal.reason not in _OF_THE_IMAGE:
            raise
        return ContractReport(boots=False, fault=Fault(refusal.reason, refusal.message, refusal.details))


def _has_shell(trial: Trial, seconds: float) -> bool:
    try:
        return trial.exec(Command(shell=_SHELL, timeout=seconds), emit=lambda *_: None).code == 0
    except RefusedError as error:
        if error.refusal.reason is Reason.NO_SHELL:
            return False
        raise


class _EnoughError(Exception):
    """More than anybody wants to hear."""


def _ask(trial: Trial, command: str, seconds: float, room: int) -> ToolReport:
    """Run one tool's command for at most this long, and hear at most so many bytes of it."""
    argv = argv_of_tool(command)
    path = trial.find(argv[0])
    if seconds <= 0:
        return judge_tool(command, path, Heard(0, timed_out=True))
    heard = {stream: bytearray() for stream in Stream}

    def listen(stream: Stream, data: bytes) -> None:
        left = room - sum(map(len, heard.values()))
        heard[stream] += data[:left]
        if len(data) > left:
            raise _EnoughError

    cut, ended = False, Exit(_KILLED)
    try:
        ended = trial.exec(Command(argv=argv, timeout=seconds), emit=listen)
    except _EnoughError:
        cut = True
    except RefusedError as error:
        if error.refusal.reason is not Reason.NOT_RUNNING:
            raise
        # The tool took the whole sandbox down with it.
    out, err = bytes(heard[Stream.STDOUT]), bytes(heard[Stream.STDERR])
    return judge_tool(command, path, Heard(ended.code, out, err, timed_out=ended.timed_out, cut=cut))
