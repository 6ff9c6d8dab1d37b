"""Recordings: changed, and ended when they have enough."""
