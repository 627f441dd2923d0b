"""Composition by hand: processes start here. The only place that may import everything.

What the server needs is imported when a command calls for it, since the SDK and the command line are
installed alone, too.
"""
