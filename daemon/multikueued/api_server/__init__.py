"""The API server of the daemon: its command, its port, and what it puts together: logs, remote jobs, the page."""
