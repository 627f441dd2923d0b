"""The clock port: the only place that asks what time it is.

May import ports and domain.
"""
