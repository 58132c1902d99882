"""Close-up of a hit's loci: LD and p of sites in its sites' places; curves of power."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.epistasis.null_model import residual_levels, write_null_model
from popdesic.epistasis.null_model import fit_null as fit_null_model
from popdesic.epistasis.power import cell_probabilities, interaction_power, power_curve
from popdesic.epistasis.zoom import REACH, squared_correlation, zoom_on_lead
from popdesic.report.figures.epistasis_zoom import draw_power, draw_zoom, power_curves
from popdesic.report.figures.style import styled
