"""REST of changes: described, filled, reviewed, published, reverted. No rule of theirs is here."""
