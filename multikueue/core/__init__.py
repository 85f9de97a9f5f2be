"""The decisions of MultiKueue, as functions of values.

Nothing here waits, connects, or knows what time it is: time arrives as an argument, objects arrive as
the JSON the API servers speak, and what should happen leaves as a value.
"""
