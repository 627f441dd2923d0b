"""What a text means: two grammars, one parser each, for the whole product.

`parse_image` reads *our* references to images of the catalog (`web`, `web:canary`, `web:7`,
`web@sha256:…`, `img_…`, `rel_…`, `@default`). `parse_oci` reads references to an OCI registry
(`reg.example:5000/team/app:1@sha256:…`). Both return a `Malformed` instead of raising.
"""

import re
from dataclasses import dataclass

from sandbay.domain.ids import ReleaseId, kind_of

STABLE = "stable"
DEFAULT = "@default"
MAX_REFERENCE = 512

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_CHANNEL = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?")
_PATH = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_HEX_ID = re.compile(r"[0-9a-f]{64}")
_DEFAULT_HOST, _OLD_DEFAULT_HOST, _DEFAULT_FOLDER = "docker.io", "index.docker.io", "library"
_MAX_NAME = 255


@dataclass(frozen=True, slots=True)
class Malformed:
    """The text is no reference; `why` is one plain sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class ByChannel:
    """`web`, `web:canary`. `said` is False when `stable` was only implied."""

    channel: str
    said: bool = True


@dataclass(frozen=True, slots=True)
class ByNumber:
    """`web:7`."""

    number: int


@dataclass(frozen=True, slots=True)
class ByDigest:
    """`web@sha256:…`."""

    digest: str


Selector = ByChannel | ByNumber | ByDigest


@dataclass(frozen=True, slots=True)
class OfImage:
    """A release of the image with this name or id."""

    image: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class OfRelease:
    """`rel_…`: exactly that release."""

    release: ReleaseId


@dataclass(frozen=True, slots=True)
class OfDefault:
    """`@default`: the deployment's default image, named on purpose."""


ImageReference = OfImage | OfRelease | OfDefault


@dataclass(frozen=True, slots=True)
class OciReference:
    """A repository of an OCI registry, with a tag, a digest, or both."""

    domain: str
    path: str
    tag: str | None
    digest: str | None

    @property
    def pinned(self) -> bool:
        """Whether the bytes are named, not just a pointer to them."""
        return self.digest is not None

    def __str__(self) -> str:
        """The canonical form that other programs get: the digest if there is one, never tag and digest."""
        name = f"{self.domain}/{self.path}"
        return f"{name}@{self.digest}" if self.digest else f"{name}:{self.tag or 'latest'}"


def is_image_name(text: str) -> bool:
    """Whether the text may name an image: a slug of at most 63 characters, and no id."""
    return _SLUG.fullmatch(text) is not None


def is_channel_name(text: str) -> bool:
    """Whether the text may name a channel. Numbers are releases."""
    return _CHANNEL.fullmatch(text) is not None


def parse_image(text: str) -> ImageReference | Malformed:
    """Read one of our references."""
    if len(text) > MAX_REFERENCE:
        return Malformed(f"a reference has at most {MAX_REFERENCE} characters")
    if text == DEFAULT:
        return OfDefault()
    if kind_of(text) == "release":
        return OfRelease(ReleaseId(text))
    name, at, digest = text.partition("@")
    if at:
        if not _DIGEST.fullmatch(digest):
            return Malformed("what follows @ must be sha256: and 64 lower-case hex digits")
        return _of_image(name, ByDigest(digest))
    name, colon, selector = text.partition(":")
    if not colon:
        return _of_image(name, ByChannel(STABLE, said=False))
    if _NUMBER.fullmatch(selector):
        return _of_image(name, ByNumber(int(selector)))
    if is_channel_name(selector):
        return _of_image(name, ByChannel(selector))
    return Malformed("what follows : must be a channel name or a release number")


def _of_image(name: str, selector: Selector) -> OfImage | Malformed:
    if is_image_name(name) or kind_of(name) == "image":
        return OfImage(name, selector)
    return Malformed("an image name has lower-case letters, digits and -, at most 63, and starts with no -")


def parse_oci(text: str) -> OciReference | Malformed:
    """Read a registry reference, with the defaults that docker's own clients fill in."""
    if not text.isascii() or not text.isprintable() or " " in text:
        return Malformed("a reference has printable ASCII characters only, no spaces")
    if "://" in text:
        return Malformed("a reference is no URL: leave out what stands before the registry's host")
    if _HEX_ID.fullmatch(text):
        return Malformed("64 hex digits alone are an image id, not a reference")
    rest, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return Malformed("the digest must be sha256: and 64 lower-case hex digits")
    name, tag = _split_tag(rest)
    if tag is not None and not _TAG.fullmatch(tag):
        return Malformed("the tag is not well-formed")
    domain, path = _split_domain(name)
    if not _HOST.fullmatch(domain):
        return Malformed("the registry's host is not well-formed")
    if not _PATH.fullmatch(path):
        return Malformed("the repository must be lower-case parts joined by / with . _ __ or - inside")
    if len(f"{domain}/{path}") > _MAX_NAME:
        return Malformed(f"a name has at most {_MAX_NAME} characters")
    return OciReference(domain, path, tag, digest or None)


def parse_registry(text: str) -> str | Malformed:
    """The canonical name of a registry, `host[:port]`: what stands first in the references to it."""
    name = text.lower()
    if len(name) > _MAX_NAME or not _HOST.fullmatch(name):
        return Malformed("a registry is host[:port]")
    return _DEFAULT_HOST if name == _OLD_DEFAULT_HOST else name


def _split_tag(text: str) -> tuple[str, str | None]:
    """A colon is a tag's only after the last slash; before it, it is a port's."""
    head, slash, last = text.rpartition("/")
    name, colon, tag = last.partition(":")
    return head + slash + name, tag if colon else None


def _split_domain(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost" or first.lower() != first)
    domain, path = (first, rest) if is_host else (_DEFAULT_HOST, name)
    if domain == _OLD_DEFAULT_HOST:
        domain = _DEFAULT_HOST
    if domain == _DEFAULT_HOST and "/" not in path:
        path = f"{_DEFAULT_FOLDER}/{path}"
    return domain, path
