"""Journeys of jobs of every kind, written once for the sandbox and for real servers."""
