"""Recordings: which clients' requests are kept as a file that can be sent once more. Pure.

What was recorded is not here: the comparer keeps that, see `comparer/`.
"""
