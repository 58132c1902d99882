"""Where people live: distances on the ground, isolation by distance, barriers."""
