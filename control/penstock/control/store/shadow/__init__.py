"""Shadows in the store: what was asked for, never what was answered."""
