"""What queries read: topics, folders of files, static tables."""
