"""Shadows: what is repeated elsewhere, and which gateways are told of it. Pure.

Whether the candidate is worse is not said here: the comparer counts that, see `comparer/`.
"""
