"""Reads the rows for the pages."""
