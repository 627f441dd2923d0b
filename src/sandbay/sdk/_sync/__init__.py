"""The synchronous client, made from `_async` by `./dev sdk`. Nothing here is edited by hand."""
