"""Roll-outs as values: the plan, the wave of each object, guards, the next move. Plain, no I/O."""
