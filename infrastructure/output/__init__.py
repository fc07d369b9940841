"""What programs print: messages, tables, and the option `--format`."""
