"""The Why page: one decision, why it came out so, what would change it, and who made it so."""
