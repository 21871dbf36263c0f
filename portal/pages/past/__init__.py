"""Pages as of an instant, and two instants compared. They have no form that writes."""
