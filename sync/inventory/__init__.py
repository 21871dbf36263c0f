"""What was seen of a cluster: its objects, and how its figures compare with the ledger."""
