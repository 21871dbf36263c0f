"""What a person reads of one decision or policy: headed parts, in sentences and small tables."""
