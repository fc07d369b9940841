"""Sources: topics, folders of files, static tables."""
