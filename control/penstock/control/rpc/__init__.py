"""What speaks gRPC to gateways and nodes: thin services over the managers.

`wire.py` turns messages into values and back; nothing else of the control plane knows both.
"""
