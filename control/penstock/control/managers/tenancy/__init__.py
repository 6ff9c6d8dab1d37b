"""Tenants, keys and tokens: changed, counted, and told to gateways."""
