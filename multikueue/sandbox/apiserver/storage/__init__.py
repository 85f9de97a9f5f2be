"""Objects, revisions and watches: what the server remembers."""
