"""Each field of a spec once: name, type, unit, bounds, default, who may set it, what it means.

A field is declared where it stands, in a frozen dataclass of `state/`, by `setting`. What the admin
API takes and shows (so OpenAPI), what the store keeps, KEY=VALUE, `--help` and the tables of the
docs follow from it. Knows nothing of what is declared.
"""
