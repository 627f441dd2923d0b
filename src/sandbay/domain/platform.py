"""Operating system, architecture, variant: `linux/amd64`, `linux/arm64/v8`."""

import re
from dataclasses import dataclass
from typing import Self

_PART = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")
_ALIASES = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64", "armhf": "arm", "i386": "386", "i686": "386"}
_IMPLIED_VARIANT = {"arm64": "v8", "amd64": "v1"}


@dataclass(frozen=True, slots=True, order=True)
class Platform:
    """Normalised on the way in, so equal platforms are equal values."""

    os: str
    architecture: str
    variant: str | None = None

    @classmethod
    def of(cls, os: str, architecture: str, variant: str | None = None) -> Self:
        """Normalise aliases (`x86_64`) and drop the variant that the architecture implies."""
        architecture = _ALIASES.get(architecture, architecture)
        if variant == _IMPLIED_VARIANT.get(architecture):
            variant = None
        return cls(os, architecture, variant or None)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `os/architecture[/variant]`; None when it is no platform."""
        parts = text.split("/")
        if len(parts) not in (2, 3) or not all(_PART.fullmatch(part) for part in parts):
            return None
        return cls.of(*parts)

    def __str__(self) -> str:
        """`os/architecture[/variant]`."""
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))
