"""REST of who may do what: role bindings, API tokens, service accounts. No manifests."""
