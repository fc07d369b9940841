"""What is found of a result: a comparison, the verdict on it, and how both are shown."""
