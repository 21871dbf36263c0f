"""What a published change did to the answers: decisions before and after it. It writes nothing."""
