"""Plans: what applying files to a cluster would do or did, asked for, in words, as a difference.

The portal makes every plan; nothing here decides what changes.
"""
