"""The Environment Template: a project's reusable preparation of a Session.

Its image, environment, files, packages, skills, plugins, setup commands and network live here, and the
resolved Template that a Session keeps for its whole life.
"""
