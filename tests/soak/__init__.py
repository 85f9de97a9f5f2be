"""A soak: weeks of a fleet on virtual time, and whether anything in the daemon grows over them."""
