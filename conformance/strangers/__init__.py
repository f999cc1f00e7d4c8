"""Faults that real programs of users meet: a file per matter, tests named by what a user sees."""
