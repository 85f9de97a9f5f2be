"""Spokes at work: caches of OCM's kinds, and the reconciler of the workers made for selected ManagedClusters."""
