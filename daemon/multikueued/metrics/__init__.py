"""Metrics: the hooks of the library, what is read at a scrape, and the page."""
