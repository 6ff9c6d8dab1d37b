"""`penstock serve`: a whole Penstock on one machine, as the children of one process.

What is asked for (`options`), what is shown (`progress`, `events`, `panel`) and what is checked
first (`checks`) are plain functions over values; `children` keeps the head and the node agent
running; `session` goes through the steps; `run` builds it all and takes it down again.
"""
