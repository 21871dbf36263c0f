"""Manifests tried without a server: what to judge, how, and with what result. No output."""
