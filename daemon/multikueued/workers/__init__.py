"""`multikueue worker`: add, remove and rotate worker clusters, and cordon and drain them, from the command line."""
