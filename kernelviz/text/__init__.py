"""Facts in, text out: what pages, terminal, files and notebooks say, each sentence in one place. No Streamlit, no I/O."""
