"""Brings deployments to what is desired, and tries them."""
