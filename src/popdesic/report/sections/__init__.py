"""Sections of the page, each made from its own results and assembled by `page`."""
