"""Adapters of the port `uploads`. May import ports, engine, flow and domain."""
