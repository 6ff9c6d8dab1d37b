"""Where replicas run: one Protocol, and its implementations."""
