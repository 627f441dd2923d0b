"""The ids port: the only place that makes identifiers and secrets from randomness.

May import ports and domain.
"""
