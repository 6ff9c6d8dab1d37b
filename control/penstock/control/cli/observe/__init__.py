"""Verbs that show what was decided about requests."""
