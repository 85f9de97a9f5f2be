"""`multikueue dashboard`: a page on a local port, for whoever runs it."""
