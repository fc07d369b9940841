"""The command, and the contract that producers, pipeline and dashboard share: settings, topics, the embedded platform."""
