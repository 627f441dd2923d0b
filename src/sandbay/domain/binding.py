"""Bindings: "this subject uses that image", as a preference or enforced, at one level.

The binding, its revision and the ceilings along a path (allow-lists, grants, request override) live here.
"""
