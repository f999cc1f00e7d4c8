"""A realm of several nodes."""
