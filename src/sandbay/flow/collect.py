"""Collecting: which bytes and rows nothing refers to any more.

A pure function of the graph of references and the leases that protect what is not referenced yet. It
answers with what to remove and, for everything that stays, with what holds it.
"""
