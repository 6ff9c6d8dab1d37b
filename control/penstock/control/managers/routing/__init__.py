"""Tells gateways the routes, and keeps what they refuse."""
