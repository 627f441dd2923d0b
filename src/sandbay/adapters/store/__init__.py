"""The store port on SQL databases, with the schema, its guards and its migrations.

May import ports and domain, and SQLAlchemy and Alembic, which nobody else uses.
"""
