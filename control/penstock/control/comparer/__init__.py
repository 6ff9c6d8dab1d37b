"""The comparer: a process that hears from gateways what shadows answered, and says who is worse.

Neither the head nor a gateway waits for it. What it counted is on disk before it says so: killed at
any moment, it goes on as if nothing had been, but for the questions that it had not heard back of.
It keeps no prompt and no answer. It alone of all of
`control` knows `penstock.evals.comparison`; the head starts it (`managers/shadow/comparer.py`).
"""
