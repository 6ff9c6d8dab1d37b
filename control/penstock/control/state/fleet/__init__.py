"""Nodes, replicas and gateways: who is admitted, heard, ready. Pure."""
