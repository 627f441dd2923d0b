"""Implementations of the ports, one folder per port. None knows another.

May import engine, ports, flow and domain. Only `entrypoints` imports an adapter.
"""
