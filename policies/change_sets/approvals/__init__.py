"""Which approvals and checks a change needs by the rules in force, in words. Plain, no Django."""
