"""How fast a MultiKueue controller is, and what it costs: `nox -s bench -- SCENARIO`. See docs/performance.md.

The controller under test is a command. Everything around it is here: control planes, workers behind slow or broken
connections, a simulator that runs the workers' jobs, one that plays the manager's Kueue, and one observer.
"""
