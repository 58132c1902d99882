"""Data whose truth is known: drawn people, sites, graphs and landscapes."""
