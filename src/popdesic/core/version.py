"""The version of Popdesic, which pyproject.toml reads from here."""

__version__ = "0.5.0"
