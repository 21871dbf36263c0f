"""What templates of pages that span the apps may call."""
