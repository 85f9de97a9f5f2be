"""
Control planes inside this process: an API server that answers like a real one, for the demo, for tests and for
people who write an adapter. Nothing here is meant for production, and nothing outside this package imports it.
"""
