"""Keeping processes running: the one loop, the one restart policy, and what they need of outside.

The head's gateway, the agent's replicas and `penstock serve`'s own children are all lived through
by `supervisor.supervise`; `restart_policy` decides what follows an end; `process` and `clock` are
the outside world as its users see it.
"""
