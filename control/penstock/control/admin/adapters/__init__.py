"""Adapter versions and aliases in the admin API."""
