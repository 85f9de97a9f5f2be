"""Credentials of a connection: tokens that are fixed, in files or held by this process, and exec plugins."""
