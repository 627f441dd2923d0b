"""The shapes that travel over HTTP. The only home of pydantic.

May import domain, to turn nouns into shapes and back.
"""
