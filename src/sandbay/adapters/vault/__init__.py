"""Adapters of the port `vault`."""
