"""A Resize, read once from any version, and the forms in which other versions and runtimes take it."""
