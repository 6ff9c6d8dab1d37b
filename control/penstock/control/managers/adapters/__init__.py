"""Adapter versions and aliases: changed, kept, and brought to replicas."""
