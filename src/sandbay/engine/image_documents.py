"""An image's manifest and config as one verified whole, whoever keeps the bytes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sandbay.domain.canonical import sha256
from sandbay.domain.platform import Platform
from sandbay.domain.release import IMAGE_ID, MANIFEST_DIGEST, ImageConfig, Layer
from sandbay.engine.limits import Limits
from sandbay.engine.manifest import check_limit, layers_of, parse_config, parse_manifest

ReadDocument = Callable[[str, int], bytes]
"""Reads a blob by digest and size, verified."""


@dataclass(frozen=True, slots=True)
class ImageDocuments:
    """What the two documents say, and their bytes."""

    manifest: bytes
    config: bytes
    platform: Platform
    image_config: ImageConfig
    layers: tuple[Layer, ...]

    @property
    def identity(self) -> Mapping[str, str]:
        """The artifacts that the bytes themselves tell."""
        return {MANIFEST_DIGEST: sha256(self.manifest), IMAGE_ID: sha256(self.config)}

    @property
    def by_digest(self) -> Mapping[str, bytes]:
        """The documents' bytes, as content-addressed storage keeps them."""
        return {sha256(data): data for data in (self.manifest, self.config)}

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every blob of the image, by digest."""
        return {layer.digest: layer.size for layer in self.layers} | {d: len(x) for d, x in self.by_digest.items()}


def read_image(digest: str, size: int, read: ReadDocument, limits: Limits) -> ImageDocuments:
    """Read a manifest and the config it names. Refuses with reasons of the group content."""
    check_limit("manifest_bytes", size, limits.manifest_bytes)
    data = read(digest, size)
    manifest = parse_manifest(data, limits)
    check_limit("config_bytes", manifest.config.size, limits.config_bytes)
    config_data = read(manifest.config.digest, manifest.config.size)
    config = parse_config(config_data)
    return ImageDocuments(data, config_data, config.platform, config.image, layers_of(manifest, config))
