"""Canaries that judge themselves: a share of real clients goes to a candidate, step by step.
Pure.

`spec.py` is what is asked for, `canary.py` where it stands, `counts.py` what gateways counted of
its two arms, `guards.py` what these counts say.
"""
