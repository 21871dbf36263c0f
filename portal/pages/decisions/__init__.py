"""Pages of the record: the explorer, exports, saved views, why a decision came out so."""
