"""The page: its files, what each of its ports refuses, and the port of a server that many people share."""
