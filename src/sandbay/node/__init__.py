"""The node: prepares images and runs allocations with one provider, as `flow` decides.

May import engine, ports, flow and domain. It sees frozen releases only: no catalog, no binding, no
resolving, and nothing of `app`.
"""
