"""The palette: search for anything by its name."""
