"""The one error of this room."""


class EvalError(Exception):
    """A measurement that cannot be made. `str()` is one line: what is wrong and what to do."""
