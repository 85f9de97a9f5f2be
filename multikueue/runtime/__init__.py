"""Tasks and lifetimes: controllers, the pool of worker clusters, the reconcilers.

Every decision is made in `multikueue.core`; this package reads caches, asks for a decision and carries it out.
Nothing here waits for a slow cluster: a cluster has its own tasks, deadlines and back-off.
"""
