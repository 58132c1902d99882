"""Communities of samples: neighbour graphs, block models, HDBSCAN."""
