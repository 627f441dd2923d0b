"""The initialisation of a Session while it goes on: which step of how many, and what it has printed."""

from dataclasses import dataclass, replace

OUTPUT_BYTES = 4096
"""How much of a step's output is kept: its end, standard output and error as they came."""

SETUP_SECONDS = 1800.0
"""How long all steps of a Session may take together unless the installation says otherwise."""


@dataclass(frozen=True, slots=True)
class SetupProgress:
    """`step` of `steps`, counted from 1; `doing` says for people what it is; `output` is the end of what it printed."""

    step: int
    steps: int
    doing: str
    output: str = ""

    def printed(self, tail: bytes) -> "SetupProgress":
        """With the last bytes of its output. They are whatever a program wrote, and become text that can be kept."""
        return replace(self, output=tail[-OUTPUT_BYTES:].decode("utf-8", "replace").replace("\0", "\ufffd"))
