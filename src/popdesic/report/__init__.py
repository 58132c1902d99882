"""The page that biologists read, and its figures."""
