"""Exhaustive scans of pairs and triples: planes, units of work, scores, significance."""
