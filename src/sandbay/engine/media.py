"""The media types that we read: OCI's and docker's names for the same things. Everything else is refused by name."""

from enum import StrEnum


class Kind(StrEnum):
    """What a document is."""

    INDEX = "index"
    MANIFEST = "manifest"


class Compression(StrEnum):
    """How a layer's tar is packed."""

    GZIP = "gzip"
    ZSTD = "zstd"
    PLAIN = "plain"


OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"

DOCUMENTS = {
    OCI_INDEX: Kind.INDEX,
    OCI_MANIFEST: Kind.MANIFEST,
    "application/vnd.docker.distribution.manifest.list.v2+json": Kind.INDEX,
    "application/vnd.docker.distribution.manifest.v2+json": Kind.MANIFEST,
}

CONFIGS = frozenset(
    {
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
    }
)

LAYERS = {
    "application/vnd.oci.image.layer.v1.tar": Compression.PLAIN,
    "application/vnd.oci.image.layer.v1.tar+gzip": Compression.GZIP,
    "application/vnd.oci.image.layer.v1.tar+zstd": Compression.ZSTD,
    "application/vnd.docker.image.rootfs.diff.tar": Compression.PLAIN,
    "application/vnd.docker.image.rootfs.diff.tar.gzip": Compression.GZIP,
    # Docker never registered this one, builders write it all the same.
    "application/vnd.docker.image.rootfs.diff.tar.zstd": Compression.ZSTD,
}
"""Layers that come with the image. Foreign ones are absent: we fetch no address that an image chooses."""
