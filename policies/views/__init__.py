"""The pages about clusters: each view reads what it needs, calls one function, renders."""
