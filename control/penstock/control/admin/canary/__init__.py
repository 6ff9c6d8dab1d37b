"""Canaries in the admin API."""
