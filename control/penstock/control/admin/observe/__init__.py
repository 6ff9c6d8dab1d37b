"""What was decided about requests, and what there is to scrape, in the admin API."""
