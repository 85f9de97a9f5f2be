"""Mutants: does a unit test fail for each small change of the code? `nox -s mutants`."""
