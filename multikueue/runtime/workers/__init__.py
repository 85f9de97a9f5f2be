"""Workers at work: how each is reached, what is read from it, and the executor of what is planned there."""
