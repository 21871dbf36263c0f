"""Replays of recorded decisions under proposed policies: asked for, followed, read; no rules."""
