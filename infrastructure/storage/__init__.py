"""Storage: paths on disk and in object stores, and data files."""
