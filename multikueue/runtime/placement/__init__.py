"""Configs that are filled from an inventory: the caches, handlers and reconcilers of `core.placement`."""
