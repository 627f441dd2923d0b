"""The blobs port: where an installation keeps the bytes of manifests, configurations and layers.

May import engine, ports and domain.
"""
