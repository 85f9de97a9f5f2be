"""Dispatchers: which workers a pending Workload is offered to."""
