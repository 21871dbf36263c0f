"""Recorded decisions judged by the present policies and by proposed ones; writes nothing."""
