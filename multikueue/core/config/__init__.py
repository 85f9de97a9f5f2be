"""Decisions about the objects that configure MultiKueue: checks, clusters, quotas."""
