"""Events: what happened to a resource, for those who watch it.

The kinds of event, what each carries and the order that a reader may rely on live here.
"""
