"""Pages of quotas: the board of all, the history of one, the journal of its ledger."""
