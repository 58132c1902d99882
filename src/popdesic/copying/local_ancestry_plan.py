"""Numbers of the model of local ancestry."""

from __future__ import annotations

#: Rounds of expectation and maximisation.
ROUNDS = 12
#: What they begin with: generations since admixture, and phase switches a heterozygous site.
FIRST_GENERATIONS, FIRST_SWITCHES = 10.0, 0.01
#: So many draws of labels are added to those of a sample, at the first number of generations: on a
#: short map its own are too few to date anything.
ADDED_EVENTS = 3.0
#: Bounds of both.
GENERATIONS, SWITCHES = (1.0, 1000.0), (1e-4, 0.5)
#: Each label counts as drawn so many times more than it was: none has the proportion 0.
ADDED_DRAWS = 0.1
#: Least likelihood of a label beside that of the others.
LEAST_SHARE = 1e-6
#: Labels: pairs of them are states.
MOST_LABELS = 16
