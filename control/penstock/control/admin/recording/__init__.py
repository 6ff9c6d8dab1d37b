"""Recordings in the admin API."""
