"""Adapters as values that the other rooms name: `name@version`, and what a version fits.

Standard library only. No I/O, no wire, no engine: a room that loads weights does so by itself.
"""
