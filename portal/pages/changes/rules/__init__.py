"""Pages of the rules of approval: all in their order, a new one, one to edit."""
