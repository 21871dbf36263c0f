"""From a kubeconfig to a tested, sealed ClusterConnection; seal keys, permissions, history."""
