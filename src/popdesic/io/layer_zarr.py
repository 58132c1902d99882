"""Calls of polyploids in VCF-Zarr as those of diploids, one for each layer (as `layer_bcf`)."""

from __future__ import annotations

import numpy as np

from .zarr_store import FILL


def widen_calls(
    calls: np.ndarray, phased: np.ndarray, ploidy: np.ndarray, sizes: np.ndarray, layers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Calls of all layers, the first of all samples first, then the second.

    Parameters
    ----------
    calls : int8 array, (n_sites, n_samples, width)
        As `zarr_calls_cpu.decode_calls` takes them.
    phased : bool array, (n_sites, n_samples)
    ploidy, sizes : int64 arrays, (n_samples,)
        Alleles and layers of each sample.
    layers : int
        Layers of the file.

    Returns
    -------
    calls : int8 array, (n_sites, layers * n_samples, 2), or 3 where a call must be refused
        A refused call has three alleles in the first layer. Missing ones are -1 twice.
    phased : bool array, (n_sites, layers * n_samples)
        False behind the first layer.
    """
    called, present = calls >= 0, calls > FILL
    known, n_present = called.sum(axis=2), present.sum(axis=2)
    alt = (calls == 1).sum(axis=2) * np.where(sizes == ploidy, 2, 1)
    high, broken = (calls > 1).any(axis=2), (calls < FILL).any(axis=2)
    refused = broken | ((known > 0) & ((known != ploidy) | (n_present != ploidy)))
    wide = np.full((len(calls), layers, len(sizes), 2 + bool(refused.any())), FILL, np.int8)
    for layer in range(layers):
        own = np.clip(alt - 2 * layer, 0, 2)
        none = (known == 0) | refused | (layer >= sizes)
        for k in range(2):
            wide[:, layer, :, k] = np.where(none, -1, np.where(high, 2, own > k))
    if refused.any():
        wide[:, 0][refused] = 0
    first = np.zeros((len(calls), layers, len(sizes)), bool)
    first[:, 0] = phased & (n_present > 1)  # stores mark one allele alone as phased
    columns = layers * len(sizes)
    return wide.reshape(len(calls), columns, -1), first.reshape(len(calls), columns)


def widen_marks(marks: dict[str, np.ndarray], layers: int) -> dict[str, np.ndarray]:
    """Fields of calls, missing behind the first layer; fields of sites stay as they are."""
    wide = {}
    for name, values in marks.items():
        if name.startswith("call_"):
            empty = {"f": np.nan, "i": -1, "u": 0, "b": False}.get(values.dtype.kind, ".")
            rest = np.full((len(values), (layers - 1) * values.shape[1], *values.shape[2:]), empty)
            values = np.concatenate([values, rest.astype(values.dtype)], axis=1)
        wide[name] = values
    return wide
