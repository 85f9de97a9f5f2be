"""Bound tokens of workers' service accounts: they end, and the leader renews them before that."""
