"""penstock-embed: the embedding model that comes with Penstock.

`pairs.py` makes sentences that mean the same, `encoder.py` learns to put them near each other,
`make.py` does it all.
"""
