"""The simulated engine: the Python side of what replica/native/simulated answers."""
