"""Whether a quantised deployment still answers as its base does, and finds the base's words as
likely: asked through the gateway, as clients do, and judged slice by slice.

`texts`, `thresholds`, `verdict` and the reports are pure; `scoring` talks to the endpoints, as
`shadow_compare.asking` does, `command` puts them together.
"""
