"""The per-machine process: it starts replicas, watches them, restarts them, and tells the head.

Decisions are pure (`restart_policy`, `replica_record`); `supervisor` lives one replica's life with
them; `replica_table` owns all supervisors of a node; `agent` reports to the head. The node agent
never sees a client's request, and replicas keep serving while it is away.
"""
