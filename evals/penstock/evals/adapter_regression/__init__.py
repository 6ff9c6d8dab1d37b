"""Whether an adapter version answers worse than another: asked through the gateway, as clients do.

`dataset`, `checks`, `scores`, `comparison`, `verdict` and the reports are pure; `asking` talks to
the gateway, `evidence` to the head, `command` puts them together.
"""
