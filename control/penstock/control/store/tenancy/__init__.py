"""Tenants, keys, access and shares in the store."""
