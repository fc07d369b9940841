"""Documents in files that land in a folder, as a source of queries: `files:/folder` where another query has a topic."""
