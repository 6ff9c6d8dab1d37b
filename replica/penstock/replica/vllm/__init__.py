"""The real engine: vLLM, called in this process. README.md lists every touch point with it.

Import `engine` and nothing else from outside. No module here imports vLLM before
`environment.prepare` has run, since vLLM reads the environment as it is imported.
"""
