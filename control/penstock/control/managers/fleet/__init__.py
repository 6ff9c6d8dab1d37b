"""Watches nodes, replicas and gateways, and runs the local gateway."""
