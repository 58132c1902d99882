"""Nested stochastic block model of a graph, by graph-tool (Peixoto 2014, 2017).

Runs under the interpreter that graph-tool is installed for, which need not be the workflow's own:
plain files in, plain files out, nothing of the package. Called by the rule as
``fit_blocks.py GRAPH OUT SEED RESTARTS DRAWS``.

GRAPH  npz: `edges` int64 (n_edges, 2), `n` number of nodes
OUT    npz: `levels` int32 (n_levels, n), finest first, of the smallest description length;
       `draws` int32 (n_draws, n_levels, n), the same levels of partitions sampled from the
       posterior (a draw with fewer levels repeats its last); `lengths` float64 (n_levels) and
       `total`, description lengths in nats; `draw_lengths` float64 (n_draws); `version`.
       Where graph-tool is missing: `missing`, one sentence, alone.
"""

import sys
import warnings
import zlib
from pathlib import Path

import numpy as np

SWEEPS, STEPS = 10, 5


def project(levels, n_levels):
    """int32 (n_levels, n): block of every node at every level, from blocks of blocks."""
    rows = [np.asarray(levels[0], np.int64)]
    for level in levels[1:n_levels]:
        rows.append(np.asarray(level, np.int64)[rows[-1]])
    rows += [rows[-1]] * (n_levels - len(rows))
    return np.array(rows, np.int32)


def fit(edges, n, seed, restarts, n_draws):
    import graph_tool
    from graph_tool.inference.minimize import minimize_nested_blockmodel_dl

    np.random.seed(seed)
    graph_tool.seed_rng(seed)
    graph = graph_tool.Graph(directed=False)
    graph.add_vertex(n)
    graph.add_edge_list(edges)
    states = [minimize_nested_blockmodel_dl(graph) for _ in range(restarts)]
    best = min(states, key=lambda state: state.entropy())
    for _ in range(SWEEPS):  # never up: beta is infinite
        best.multiflip_mcmc_sweep(beta=np.inf, niter=STEPS)
    bs = [np.array(b) for b in best.get_bs()]
    n_levels = next(i for i in range(1, len(bs) + 1) if len(set(project(bs, i)[-1])) == 1)
    found = {
        "levels": project(bs, n_levels),
        "lengths": np.array([best.level_entropy(i) for i in range(n_levels)]),
        "total": best.entropy(),
        "version": str(graph_tool.__version__).split()[0],
    }
    draws, lengths = [], []
    for _ in range(n_draws):
        best.multiflip_mcmc_sweep(niter=STEPS)
        draws.append(project([np.array(b) for b in best.get_bs()], n_levels))
        lengths.append(best.entropy())
    shape = (n_draws, n_levels, n)
    return found | {
        "draws": np.array(draws, np.int32).reshape(shape),
        "draw_lengths": np.array(lengths),
    }


def write(out, arrays):
    """OUT and the checksum beside it, as `popdesic.store` keeps them of other results."""
    out = Path(out)
    checksum, record = (out.with_name(f".{out.name}.{end}") for end in ("crc32", "record"))
    checksum.unlink(missing_ok=True)  # of what was here before
    record.unlink(missing_ok=True)
    with open(out, "wb") as file:
        np.savez(file, **arrays)
    content = out.read_bytes()
    checksum.write_text(f"{zlib.crc32(content):08x} {len(content)}\n")


def main(graph, out, seed, restarts, n_draws):
    warnings.simplefilter("ignore")  # graph-tool warns that it cannot draw
    with np.load(graph) as arrays:
        edges, n = arrays["edges"], int(arrays["n"])
    try:
        found = fit(edges, n, int(seed), int(restarts), int(n_draws))
    except ImportError as reason:
        found = {
            "missing": f"communities: {sys.executable} has no graph-tool ({reason}), so there are "
            "no block-model communities; install Debian's python3-graph-tool or conda's "
            "graph-tool, or name its interpreter in communities.graph_tool_python."
        }
        print(found["missing"])
    write(out, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
