"""Storage: paths on disk and in object stores, checkpoint names, data files."""
