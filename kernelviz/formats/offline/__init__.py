"""The parts of the offline page: charts as data, sections as HTML, Plotly packed, and the script that draws."""
