"""Logs of remote runs as an aggregated API, for those who may not read the workers' credentials."""
