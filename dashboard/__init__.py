"""The Streamlit dashboard: shows the result topics and knows nothing else. Each domain has one file, named after it."""
