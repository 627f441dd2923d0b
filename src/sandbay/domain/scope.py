"""Scopes: where in an organisation a Session acts.

The registered row `kind:ref` with its parent lives here, and the path that is derived from the narrowest
scope that a Session names.
"""
