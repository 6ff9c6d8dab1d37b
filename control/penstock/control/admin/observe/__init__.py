"""What is told of the system to those who watch it, in the admin API."""
