"""The command line. Talks to an installation through the SDK and in no other way.

May import sdk.
"""
