"""Pages of drift: the objects that differ, both sides of one, its history."""
