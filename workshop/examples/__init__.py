"""A catalogue of Spark's functions, sources and sinks to learn from: `python -m workshop.examples`, see workshop/examples/README.md.

Nothing here is part of the pipeline. An example takes the session and an empty folder, and returns rows to print.
"""
