"""Charts in a browser, on pages and offline pages: the bundle of Plotly, the script that draws a chart, and figures as JSON."""
