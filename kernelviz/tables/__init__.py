"""Tables, declared once: lists of columns that pages, terminal, Markdown, offline page and data frames write each in its way."""
