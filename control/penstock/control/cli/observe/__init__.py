"""Verbs that show what was decided about requests, and how the fleet is watched."""
