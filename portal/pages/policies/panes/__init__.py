"""What the editor shows beside its form: differences, impact, history. Nothing is written here."""
