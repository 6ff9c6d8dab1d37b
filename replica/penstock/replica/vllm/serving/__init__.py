"""One call through vLLM's own app: the way in, the engine's outputs, the way out."""
