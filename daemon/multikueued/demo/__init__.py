"""`multikueue demo`: jobs travelling between sandbox clusters, dispatched by the real daemon over real HTTP."""
