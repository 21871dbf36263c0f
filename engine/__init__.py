"""The rules of admission as pure functions over values: no clock, I/O, float or framework."""
