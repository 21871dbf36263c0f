"""The follower: long watches of all connected clusters, their changes taken in at once."""
