"""Which runtime this node uses, and why not another: each is judged by a real sandbox with limits on this host.

`auto` is crun, which takes less than half of the processor time, where it proves itself and programs are started by
each sandbox's spawner: its own exec gives a terminal no size. Otherwise, and where the host has no cgroup2, it is runc.
runsc keeps a sandbox's files and mounts to itself, so that neither what booted nor its files can be read back: it does
not pass the proof.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sandbay.adapters.providers.oci.cgroups import Layout, find_layout
from sandbay.adapters.providers.oci.declaration import DECLARATION
from sandbay.adapters.providers.oci.provider import OciProvider
from sandbay.adapters.providers.oci.resident import Resident
from sandbay.adapters.providers.oci.settings import OciSettings
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, ImageConfig, Variant
from sandbay.engine.store import LayerStore, Record
from sandbay.ports.provider import Finding, ProviderPlace

AUTO = "auto"
_FASTER, _USUAL = "crun", "runc"
RUNTIMES = (_FASTER, _USUAL, "runsc")
_NOTHING = Variant(DECLARATION.platforms[0], {}, (DECLARATION.kind,))


class _OneEmptyImage(LayerStore):
    """A store that holds an image of one empty layer, whatever it is asked for."""

    def verified(self, key: ContentKey) -> Record:
        return Record(key, {}, _NOTHING.platform, ImageConfig(), ("empty",), self._trees.trees)


@dataclass(frozen=True)
class Choice:
    """What was asked for, on this place."""

    place: ProviderPlace
    settings: OciSettings

    def runtime(self) -> str:
        """The program. Refuses with `host_unfit` one that was named and cannot run sandboxes here."""
        asked = self.place.runtime
        if asked == AUTO:
            return _FASTER if self._suits() and self.why_not(_FASTER) is None else _USUAL
        if asked not in RUNTIMES:
            message = f"there is no runtime {asked}: name {', '.join(RUNTIMES)} or {AUTO}"
            raise RefusedError(Reason.HOST_UNFIT, message, param="runtime", details={"runtime": asked})
        if asked != _USUAL and (why := self.why_not(asked)) is not None:
            facts = {"runtime": asked, "why": why}
            raise RefusedError(Reason.HOST_UNFIT, f"{asked} cannot run sandboxes here: {why}", details=facts)
        return asked

    def _suits(self) -> bool:
        """Whether this host has what the faster one needs beside the proof."""
        resident = Resident(self.place.run, self.settings.spawner, self.settings.init)
        return _layout() is not Layout.LEGACY and resident.fault is None

    def why_not(self, runtime: str) -> str | None:
        """Start a sandbox with limits and end it again; None when it and its limits were as they should be."""
        if shutil.which(runtime) is None:
            return "it is not installed"
        with tempfile.TemporaryDirectory(prefix="runtime-", dir=self.place.home) as folder:
            home = Path(folder)
            home.chmod(0o711)
            layers = _OneEmptyImage(home / "store", self.place.blobs)
            (home / "store" / "l" / "empty").mkdir(mode=0o755)
            run, label = self.place.run / home.name, f"{self.place.installation}-{home.name[-8:]}"
            provider = OciProvider(home, run, layers, label, replace(self.settings, runtime=runtime))
            try:
                provider.probe(_NOTHING)
            except RefusedError as error:
                says = error.refusal.details.get("says")
                return f"{error.refusal.message}: {says}" if says else error.refusal.message
            finally:
                provider.close()
        return None

    def findings(self, chosen: str) -> Sequence[Finding]:
        """Which runtime it is and what could be said of the others."""
        asked = f"by {AUTO}" if self.place.runtime == AUTO else "as it was asked for"
        says = [f"{chosen} is used, {asked}", *self._others(chosen)]
        return [Finding("runtimes", ok=True, says="; ".join(says), fatal=False)]

    def _others(self, chosen: str) -> Iterator[str]:
        for runtime in RUNTIMES:
            if runtime != chosen:
                why = self.why_not(runtime)
                yield f"{runtime} could be (SANDBAY_RUNTIME={runtime})" if why is None else f"not {runtime}: {why}"


def _layout() -> Layout:
    return find_layout(Path("/proc/self/mountinfo").read_text(), Path("/")).layout
