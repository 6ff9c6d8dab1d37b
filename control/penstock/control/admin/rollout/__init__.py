"""Deployments in the admin API."""
