"""MicroServing: calls below a request, which compute KV in one engine and move it into another.

What all engines that serve it share. How KV is held and moved is each engine's own.
"""
