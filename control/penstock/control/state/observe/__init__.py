"""What gateways decided about requests, for whoever asks afterwards: records, and their story."""
