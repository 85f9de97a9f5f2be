"""Other people's programs, run as they are against a sandbox: `python -m tests.clients`, in `nox -s clients`."""
