"""Publishing: how a release comes into being and which steps it passes.

The run of a publication, its steps and what each can come to live here.
"""
