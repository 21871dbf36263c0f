"""One decision on record, judged again by the policies of an instant. Writes nothing."""
