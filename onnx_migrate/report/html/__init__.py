"""The report as a page of HTML."""
