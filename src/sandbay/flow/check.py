"""Checking: whether the state of an installation keeps every promise made about it.

A pure function that judges a view of Core and nodes together and names each broken invariant. The fleet
simulation asks it after every step.
"""
