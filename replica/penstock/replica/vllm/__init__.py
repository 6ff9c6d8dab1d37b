"""The real engine: vLLM, called in this process. `surface/` lists all of it that this reaches for.

Import `engine` and nothing else from outside. No module here imports vLLM before
`environment.prepare` has run, since vLLM reads the environment as it is imported.
"""
