"""Case-control studies with known interactions, or with none, and people of known kinship."""
