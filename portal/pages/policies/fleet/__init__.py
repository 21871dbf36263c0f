"""What the list of the fleet's policies searches, groups and shows; views and forms are above."""
