"""Figures for Prometheus: followed in Kafka, where the pipeline and the audit write them, and served over HTTP."""
