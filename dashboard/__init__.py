"""Streamlit: shows the result topics, and knows nothing else."""
