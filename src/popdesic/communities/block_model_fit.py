"""Fit a nested stochastic block model with graph-tool (Peixoto 2014, 2017).

`block_model` runs this file under the interpreter that has graph-tool, which may differ from the
workflow's: it reads and writes plain files and imports nothing from the package.
``block_model_fit.py GRAPH OUT SEED RESTARTS DRAWS``; if numpy or graph-tool cannot be imported,
the reason goes to standard output and the exit status is 3.

GRAPH  npz: `edges` int64 (n_edges, 2), `n` number of nodes; perhaps `weights` float64 (n_edges),
       not negative: exponential within each pair of blocks, with a mean of its own (Peixoto 2018)
OUT    npz: `levels` int32 (n_levels, n), finest first, with the smallest description length;
       `draws` int32 (n_draws, n_levels, n), the same levels of partitions sampled from the
       posterior (a draw with fewer levels repeats its last); `lengths` float64 (n_levels) and
       `total`, description lengths in nats; `draw_lengths` float64 (n_draws); `version`.
"""

import sys
import warnings

SWEEPS, STEPS = 10, 5
#: Exit status if graph-tool, or the numpy that it was built for, is missing.
MISSING = 3


def project_levels(levels, n_levels):
    """int32 (n_levels, n): block of every node at every level, from blocks of blocks."""
    rows = [np.asarray(levels[0], np.int64)]
    for level in levels[1:n_levels]:
        rows.append(np.asarray(level, np.int64)[rows[-1]])
    rows += [rows[-1]] * (n_levels - len(rows))
    return np.array(rows, np.int32)


def fit_levels(edges, n, seed, restarts, n_draws, weights=None):
    np.random.seed(seed)
    graph_tool.seed_rng(seed)
    graph = graph_tool.Graph(directed=False)
    graph.add_vertex(n)
    graph.add_edge_list(edges)
    options = {}
    if weights is not None:
        records = [graph.new_edge_property("double", weights)]
        options["state_args"] = {"recs": records, "rec_types": ["real-exponential"]}
    states = [minimize_nested_blockmodel_dl(graph, **options) for _ in range(restarts)]
    best = min(states, key=lambda state: state.entropy())
    for _ in range(SWEEPS):  # beta is infinite: the description length never increases
        best.multiflip_mcmc_sweep(beta=np.inf, niter=STEPS)
    bs = [np.array(b) for b in best.get_bs()]
    n_levels = next(i for i in range(1, len(bs) + 1) if len(set(project_levels(bs, i)[-1])) == 1)
    found = {
        "levels": project_levels(bs, n_levels),
        "lengths": np.array([best.level_entropy(i) for i in range(n_levels)]),
        "total": best.entropy(),
        "version": str(graph_tool.__version__).split()[0],
    }
    draws, lengths = [], []
    for _ in range(n_draws):
        best.multiflip_mcmc_sweep(niter=STEPS)
        draws.append(project_levels([np.array(b) for b in best.get_bs()], n_levels))
        lengths.append(best.entropy())
    found["draws"] = np.array(draws, np.int32).reshape((n_draws, n_levels, n))
    found["draw_lengths"] = np.array(lengths)
    return found


def main(graph, out, seed, restarts, n_draws):
    with np.load(graph) as arrays:
        edges, n = arrays["edges"], int(arrays["n"])
        weights = arrays["weights"] if "weights" in arrays.files else None
    found = fit_levels(edges, n, int(seed), int(restarts), int(n_draws), weights)
    with open(out, "wb") as file:
        np.savez(file, **found)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # graph-tool warns that it cannot draw
    try:
        import graph_tool
        import numpy as np

        try:
            from graph_tool.inference.minimize import minimize_nested_blockmodel_dl
        except ImportError:  # newer versions need graph_tool.draw to be imported first
            import graph_tool.draw
            from graph_tool.inference.minimize import minimize_nested_blockmodel_dl
    except Exception as reason:  # built for another numpy, it raises other errors too
        print("{}: {}".format(type(reason).__name__, " ".join(str(reason).split())))
        sys.exit(MISSING)
    main(*sys.argv[1:])
