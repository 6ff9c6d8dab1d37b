"""A replica: one process that answers for one deployment, behind the Inference service.

Knows the wire and the values of adapters. Never imports the control plane; vLLM only in `vllm/`.
"""
