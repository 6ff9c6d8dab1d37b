"""Tenants, keys, tokens, usage and spend in the admin API."""
