"""Use cases: load what a decision needs, let `flow` decide, apply the result through a port.

May import ports, flow and domain. Knows no adapter, no HTTP and no image engine.
"""
