"""Builds the example images into OCI layouts. Standard library only: it runs before anything is installed."""
