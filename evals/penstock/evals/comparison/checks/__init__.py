"""The checks: each a function over a pair, that says by how much the candidate is worse (-1 to 1),
or None where the pair does not say. What is a gate, and with which margin, says `rules`."""
