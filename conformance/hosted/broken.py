"""A module that does not import."""

raise RuntimeError("broken on purpose")
