"""The settings: what the file may have, how it is read, and the errors."""
