"""Whose turn it is: tenants beside each other, and the calls of each."""
