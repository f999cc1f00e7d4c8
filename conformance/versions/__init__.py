"""Nodes and servers of different versions, which work together."""
