"""Sends what was recorded once more, with the gaps that lay between, and says what came of it.

`replies` reads any endpoint's answers, `summary` counts, both pure; `sending` keeps the schedule,
`command` puts all together.
"""
