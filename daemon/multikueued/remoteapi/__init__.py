"""The API `remote.multikueue.dev` beside logs: jobs, and the fleet, as objects of the manager cluster."""
