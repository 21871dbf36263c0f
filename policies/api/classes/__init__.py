"""Namespace classes over REST: the classes, their members, the policies that they gave."""
