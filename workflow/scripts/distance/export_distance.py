"""Write the distances of the study as text and for other programs."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.distance.matrix import export_distances
from popdesic.export.matrices import export_trees_and_matrices

with logged(snakemake.log[0], snakemake.input):
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    folder = Path(files.samples).parent
    distances = {
        "metric": params.metric,
        "n_sites": read_json(files.panel)["n_sites"],
        "min_called": params.min_called,
    }
    if outputs.get("text"):
        export_distances(folder, **distances, threads=snakemake.threads)
    if params.formats:
        out = Path(outputs.exports[0]).parent
        export_trees_and_matrices(folder, params.formats, out, **distances)
