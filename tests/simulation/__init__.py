"""A whole fleet on a virtual clock in one process: real controllers, drawn faults, checked promises.

A seed draws everything: the fleet, the load, what users do, what breaks and when. The same seed gives the same run.
"""
