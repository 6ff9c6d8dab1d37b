"""Loops that act: each waits for a change of the view, asks a pure function, does what it says.

No manager holds facts of its own that the view could hold; the outside is reached only through
Protocols declared in the module that uses them.
"""
