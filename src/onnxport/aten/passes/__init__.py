"""Passes over the captured program."""
