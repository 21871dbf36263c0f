"""One run over a cluster: read, compare, write; what people decide about drift; a run's life."""
