"""What shares a system of two simulated replicas, which ends with the last of these tests."""
