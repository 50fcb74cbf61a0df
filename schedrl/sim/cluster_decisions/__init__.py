"""The same clusters, one decision at a time and many at once: what a Gymnasium environment steps."""
