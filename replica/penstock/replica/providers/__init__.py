"""Engines whose answers another party gives: Bedrock, OpenAI-compatible endpoints, a fixed text.

No torch, no vLLM. Each foreign library is known to one file alone: boto3 to `bedrock_client.py`,
the openai SDK to `openai_client.py`. What is translated is translated by pure functions.
"""
