"""The control plane: desired state, reconciled to replicas; routes, streamed to gateways.

Two processes live here, the head (`head.py`) and the node agent (`node_agent/`), and the
`penstock` command that starts them (`cli/`). It never sees a client's request.
"""
