"""The inventory: what was seen of a cluster, and how its figures compare with the ledger."""
