"""`multikueue run`: wiring, leadership, and what the leader does."""
