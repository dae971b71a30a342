"""Models at URLs, through fsspec."""
