"""A cluster's objects and quota status, listed for the ledger, and compared with it."""
