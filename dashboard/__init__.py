"""Streamlit: shows the result topics, and knows nothing else. A domain is one file here with the name that it has everywhere."""
