"""Roll-outs carried on: their figures from the record, the move that is due."""
