"""Recordings in the store: what was asked for, never what was recorded."""
