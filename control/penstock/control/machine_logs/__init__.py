"""What the processes of one machine wrote: read together, by the times of its lines."""
