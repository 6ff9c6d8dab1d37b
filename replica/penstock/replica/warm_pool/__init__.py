"""A warm pool: a process that has imported everything, and forks of it that wait to be a replica.

The protocol with the node agent is in the README of this folder. Nothing here knows the agent.
"""
