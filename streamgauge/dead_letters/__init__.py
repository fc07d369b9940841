"""Dead letters: listed, exported, and after a mend sent back to the topics that they came from."""
