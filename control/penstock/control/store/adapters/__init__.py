"""Adapters in the store: versions, aliases, evidence, and the bytes themselves."""
