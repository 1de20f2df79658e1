"""The Streamlit side: entry script, navigation, links, and the pieces that pages share. Imports neither torch nor triton."""
