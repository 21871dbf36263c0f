"""Answers of the API as of an instant (``?at=``): lists and single objects. Writes nothing."""
