"""The version of the distribution, readable without importing the package."""

__version__ = "0.1.0"
