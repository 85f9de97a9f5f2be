"""A discrete simulation of a fleet around the real dispatchers: what does choosing workers cost, and bring?

The dispatchers are the project's own. What is simulated are the workers' Kueues and the manager's, requests, and the
users of both. `python -m tests.dispatch --help` runs it.
"""
