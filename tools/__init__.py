"""What ./dev calls. Only the standard library: it runs before anything is installed."""
