"""Shadows: made and ended, and the process that compares what they answer."""
