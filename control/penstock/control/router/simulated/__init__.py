"""Engines that exist in figures alone, for `penstock program test`: time jumps, nothing runs.

Step times, queue, prefix cache and transfers are modelled; memory never runs out.
"""
