"""The world as the product needs it: one Protocol per port, with its contract in words.

May import `sandbay.domain` and `sandbay.flow`. Who implements a port is known to `entrypoints` alone.
"""
