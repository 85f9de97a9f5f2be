"""The ports of the daemon: health and metrics, and what their clients may hold."""
