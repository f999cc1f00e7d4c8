"""A package with folders and programs, for nodes under test."""
