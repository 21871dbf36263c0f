"""REST of kept tests: their objects, and a run of those of one namespace. No judging here."""
