"""The rules: plain Python, values in, values out. No clock, no I/O, no float, no framework."""
