"""Decisions: pure functions over a view, one module per step, in the order in which a request meets them.

May import only `sandbay.domain`, and never one another: the steps meet in nouns. What holds for the
domain's imports holds here too.
"""
