"""Pages of what changes did: the effect of one, and the changes of a week with theirs."""
