"""The cycle of the small Kueue: queues, quota and who is admitted next."""
