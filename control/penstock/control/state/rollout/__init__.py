"""Deployments, and the way from what is desired to what runs. Pure."""
