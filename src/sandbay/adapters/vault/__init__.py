"""Adapters of the port `vault`. May import ports, engine, flow and domain."""
