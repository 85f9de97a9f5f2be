"""What an object may be: schemas, defaults, CEL rules."""
