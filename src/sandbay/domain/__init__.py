"""Nouns: what each thing is, which moves are legal for it, and what a decision can come to.

Pure values. May import only `sandbay.domain` and calculating parts of the standard library: no I/O, no
time, no randomness, no logging, no pydantic, no SQL.
"""
