"""Generators of pages and other generated files; docs/maintainers/measuring.md lists the commands."""
