"""The newcomer's tour. Begin to read in `__main__`; the work that the sandboxes do is in `work`."""
