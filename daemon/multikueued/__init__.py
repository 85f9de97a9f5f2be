"""The daemon: settings, wiring, command line, metrics and health. All the work is in the library `multikueue`.

Importing this package imports nothing else; a subcommand is imported when it is called.
"""
