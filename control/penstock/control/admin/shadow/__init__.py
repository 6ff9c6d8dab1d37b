"""Shadows in the admin API."""
