"""What is kept of the manager and its queues: informers, indexes, and writes that they have not seen yet."""
