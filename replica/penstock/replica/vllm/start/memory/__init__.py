"""What memory an engine takes, told from files and settings before anything is started.

Pure sums over values that are read from headers: no vLLM, no torch. What is certain and what is a
margin are told apart, since a start may be refused for the first alone.
"""
