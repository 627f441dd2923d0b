"""The provider port: one folder per provider, each known to the rest by its declaration only.

May import engine, ports and domain. A provider's name is compared nowhere outside its own folder, and the
folders do not import each other.
"""
