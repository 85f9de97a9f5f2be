"""Inventories at work: caches, handlers and reconcilers of filled configs, and of the workers made for them."""
