"""Nodes, replicas and gateways in the admin API."""
