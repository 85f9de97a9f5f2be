"""`multikueue queues`: queues of workers that stand for those of the manager."""
