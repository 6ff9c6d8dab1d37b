"""Canaries: made and moved by operators, judged each second by themselves."""
