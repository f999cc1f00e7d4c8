"""Crosstie: the `crosstie` program as a Python package, and the host of its Python components."""
