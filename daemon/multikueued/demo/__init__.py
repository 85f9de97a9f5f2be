"""`multikueue demo`: the daemon dispatches jobs between sandbox clusters, over HTTP."""
