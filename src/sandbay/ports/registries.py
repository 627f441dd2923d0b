"""Registries as sources of images.

Contract: credentials reach the registry that they belong to and the token realm it names, nobody else, and never
come back in a refusal. The reading is that of every other source.
"""

from typing import Protocol

from sandbay.domain.reference import OciReference
from sandbay.domain.registry import Credentials
from sandbay.ports.image_source import ImageSource


class Registries(Protocol):
    """All registries that this installation may pull from."""

    def source(self, reference: OciReference, credentials: Credentials | None) -> ImageSource:
        """The image behind a tag or digest. Nothing is asked before it is read."""
