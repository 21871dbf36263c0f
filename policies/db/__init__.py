"""Database statements that share a round trip; their rows are read later. Knows no table."""
