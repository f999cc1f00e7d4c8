"""Attacks of one peer on all others, and the witness beside it."""
