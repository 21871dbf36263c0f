"""What enforces what in a cluster, what is missing until it does, and ownership. Writes nothing."""
