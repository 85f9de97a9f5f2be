"""One reconciler per kind of object. Each reads caches, asks the core what to do, and does it: none decides itself."""
