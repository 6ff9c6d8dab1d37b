"""Facts about the cluster and pure functions over them.

No I/O, no asyncio, no clock: callers pass now. Values are frozen; a change makes a new value.
"""
