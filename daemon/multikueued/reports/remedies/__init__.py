"""What to do about what was found: the remedies, and which cause has which."""
