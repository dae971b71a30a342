"""Tools for maintainers. Nothing of the package imports them."""
