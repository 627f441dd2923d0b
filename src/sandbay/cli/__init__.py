"""The command line. Talks to an installation through the SDK and in no other way.

Starting is cheap: this package imports the SDK, httpx and rich inside the commands that need them.
"""
