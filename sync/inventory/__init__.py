"""The inventory: observations of a cluster, and the comparison of its usage with the ledger."""
