"""One module a subcommand, each with its ``command``: options, one call, its answer printed."""
