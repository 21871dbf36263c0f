"""From a kubeconfig to a tested, sealed connection, and the permissions that it needs."""
