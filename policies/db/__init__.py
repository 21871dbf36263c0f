"""Database statements sent in one go, their rows read later. Below ledger and snapshot."""
