"""The image_source port: where images come from, one module per kind of source.

May import engine, ports and domain. The modules do not import each other.
"""
