"""HTTP: one module per resource, which calls a use case and shapes the answer.

May import app, ports, flow and domain. The one mapping from a reason to a status is in `errors`.
"""
