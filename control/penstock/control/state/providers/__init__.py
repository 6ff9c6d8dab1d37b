"""Engines that a managed provider answers for, and what is secret in their settings. Pure."""
