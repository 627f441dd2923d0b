"""The client for asyncio: the source that is written by hand. `./dev sdk` makes `_sync` from it."""
