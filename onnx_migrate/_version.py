"""The version of the distribution, readable without importing the package."""

__version__ = "1.0.0"
