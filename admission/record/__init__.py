"""The record of decisions: written, redacted, searched, exported, removed. No rule here."""
