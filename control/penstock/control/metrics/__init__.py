"""What Prometheus is told of the head and of a node: collected when it asks, in threads of its own.

No loop waits for a scrape, and nothing here changes anything. `prometheus_client` appears here
alone.
"""
