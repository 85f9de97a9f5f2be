"""The commands of operators: they read the manager, and print what `multikueued.reports` makes of it."""
