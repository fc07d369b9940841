"""Where files are: paths of folders and object stores, names of checkpoints, data files."""
