"""Vhosts that survive their machine."""
