"""`multikueue doctor`: reads both sides, checks them, prints what it finds; the leader publishes what it sees."""
