"""The parts of the offline page: the data of the charts, sections and tables as HTML, and the script that draws the charts."""
