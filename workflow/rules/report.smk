# Figures and the page that biologists read.
#
# needs   the tables of qc, panel, distance, geodesic, embedding
# gives   results/figures/*.svg *.png
#         results/report/report.html   one self-contained page

FIGURES = [
    "filters",
    "samples",
    "distances",
    "alpha",
    "pca",
    "scree",
    *[f"{m}.{s}.alpha{a}" for m in ("pcoa", "umap") for s in SPACES for a in ALPHAS],
]
