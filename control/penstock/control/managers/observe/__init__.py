"""Asks gateways what they decided about requests."""
