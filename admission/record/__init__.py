"""What is on record: written, redacted, kept, exported, searched. No verdict is made here."""
