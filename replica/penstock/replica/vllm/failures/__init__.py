"""What goes wrong, as a value with its status and code."""
