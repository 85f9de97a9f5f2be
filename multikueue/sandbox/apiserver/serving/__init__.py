"""HTTP: routes, users, bodies, tables and discovery. Imports all other folders."""
