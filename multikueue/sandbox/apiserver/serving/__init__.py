"""HTTP: routes, bodies, tables, discovery, and the same without a connection."""
