"""The parts of the offline page: charts as data, sections and tables as HTML, and the script that draws."""
