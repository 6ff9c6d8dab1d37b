"""What others see of a replica, and ask it: states, health, load, adapters, metrics."""
