"""What was decided about requests, in the admin API."""
