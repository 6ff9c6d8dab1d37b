"""Whether a candidate answers worse than what serves today: pairs of answers, and a verdict.

No I/O, no asyncio, no clock, no randomness but from a seed that is given: callers bring whole
answers, and whatever else a check needs (embeddings, a judge's verdicts). `pair` holds the values,
`checks` turn a pair into differences, `betting` weighs these, `tally` counts sessions, `report`
says what it comes to, `plan` says beforehand what it can come to. `gate` holds a figure's interval
to a limit.
"""
