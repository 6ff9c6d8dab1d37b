"""Adapter versions, and which replicas keep them. Pure."""
