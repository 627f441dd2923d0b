"""The Python client of an installation.

Imports nothing else of Sandbay: it knows the HTTP interface and no more.
"""
