"""The components of this node."""
