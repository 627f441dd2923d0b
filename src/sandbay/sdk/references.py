"""`NAME`, `NAME:CHANNEL`, `NAME:NUMBER`, `NAME@DIGEST`: just enough to ask the right route.

What a reference means is the installation's to say; this only finds the image's name and a release number.
"""

from dataclasses import dataclass

from sandbay.sdk.errors import UnknownReferenceError


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in its parts; at most one of channel, number and digest is set."""

    text: str
    name: str
    channel: str | None = None
    number: int | None = None
    digest: str | None = None

    @property
    def is_whole_image(self) -> bool:
        """Whether it names an image and no release of it."""
        return self.text == self.name


def parse(text: str) -> Reference:
    """Split a reference. Raises `UnknownReferenceError` (invalid_reference)."""
    name, at, digest = text.partition("@")
    if at and name and digest:
        return Reference(text, name, digest=digest)
    name, colon, selector = text.partition(":")
    if not name or at or "/" in text or (colon and not selector) or not text.isprintable():
        raise UnknownReferenceError(
            f"{text!r} is no reference to an image", code="invalid_reference", param="reference"
        )
    if not colon:
        return Reference(text, name)
    if selector.isascii() and selector.isdigit():
        return Reference(text, name, number=int(selector))
    return Reference(text, name, channel=selector)
