"""Thinks about two sides and what they last agreed on: which changed, and what to do. Pure."""
