"""The wizard that connects a cluster: paste, test, manifest, webhooks, ownership."""
