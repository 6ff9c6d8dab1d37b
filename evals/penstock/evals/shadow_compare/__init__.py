"""Whether one endpoint answers worse than another: both are asked a dataset, as clients ask.

`asking` talks to the endpoints, `command` puts all together; what is counted, and how, is
`penstock.evals.comparison`.
"""
