"""What the manager's objects say, as values: pure functions of objects and `now`, printed by `multikueued.commands`."""
