"""The kinds on their real controllers: a file per project."""
