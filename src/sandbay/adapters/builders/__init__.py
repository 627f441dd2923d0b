"""Adapters of `ports.builder`."""
