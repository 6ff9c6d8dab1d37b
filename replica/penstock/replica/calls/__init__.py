"""Calls between the native server and an engine: in, to tasks, and back."""
