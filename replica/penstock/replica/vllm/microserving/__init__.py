"""KV moved between vLLM's engines: our KV connector, and MicroServing's calls on top of it.

The frontend (`service.py`) asks the engine's process (`core.py`), where `scheduling.py` leases
blocks and follows what is sent; the workers' halves (`working.py`) write and send the bytes.
"""
