"""Crossbar.io as a judge: what it answers, kept as data, and what plays it anew."""
