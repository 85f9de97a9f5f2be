"""What `multikueue doctor` finds: pure checks of what was read of the manager and the workers, as rows of a table."""
