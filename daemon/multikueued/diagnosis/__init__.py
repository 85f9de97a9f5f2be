"""What is wrong with a fleet: facts, and one table of checks, which doctor, status, explain and the page run."""
