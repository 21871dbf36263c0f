"""A recorded decision, decided again: its causes, what would pass, which running pods would not."""
