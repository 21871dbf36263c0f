"""The pages of the record. Nothing here writes a decision."""
