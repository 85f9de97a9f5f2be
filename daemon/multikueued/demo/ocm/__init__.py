"""`multikueue demo --ocm`: the three stories of Open Cluster Management's guide, with the real placement check."""
