"""Tenants, keys and tokens, what they use and spend, and their shares at gateways. Pure."""
