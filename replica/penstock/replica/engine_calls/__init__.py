"""MicroServing as the network has it: the gRPC service's calls, and the same by REST.

Knows no engine: it asks `Engine.microserving`, and `Engine.answer` to generate.
"""
