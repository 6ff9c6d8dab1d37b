"""The outside world behind small interfaces: time, processes, dialled connections.

Imported only by composition roots; everything else declares the Protocol it needs.
"""
