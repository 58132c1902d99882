"""`popdesic tune` compiles all kernels that the jobs of a default study launch.

Kernels are compiled and their arguments checked, but most of them do not run here: what is launched
does not depend on what they find.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import yaml
from oracles.neighbor_checks import SCREENS
from support.layouts import draw_layout

from popdesic.components.krylov import Krylov
from popdesic.components.relationship_products import RelationshipProducts
from popdesic.core.places import HOME, KERNEL_FOLDER
from popdesic.engine.genotype_products import Calls
from popdesic.engine.layout import KernelSource
from popdesic.engine.terms import KINSHIP, SQUARED
from popdesic.geodesic import closure
from popdesic.maps.lay_out import lay_out as lay_out_of
from popdesic.relatives.expect_kinship import expected_kinship
from popdesic.relatives.ld import r2_matrix
from popdesic.relatives.screen_pairs import screen_pairs
from popdesic.study import rehearsal
from popdesic.study.precompile_cpu import NUMBERS

from .machine import Kernel

CLOSURES = [f"closures of {number}" for number in NUMBERS]
#: Rules that use a GPU, and their rehearsals; none: no default study has such a job.
RULES = {
    "measure_row": ["products"],
    "close_paths": CLOSURES,
    "close_founders": CLOSURES,
    "span_founders": ["products"],
    "find_component_neighbors": ["neighbors"],
    "compute_maps": ["maps"],
    "compute_umap": ["maps"],
    "measure_ld": ["correlations"],
    "define_axes": ["components"],
    "compute_pca": ["components"],
    "relate_samples": ["kinships"],
    "measure_population": ["counts"],
    "plan_epistasis": [],
    "scan_epistasis": [],
    "permute_epistasis": [],
    "screen_pairs": [],
    "search_profiles": [],
    "compute_densmap": [],
    "export_kinship": [],
    "prepare_ibd": [],
    "find_ibd_row": [],
    "join_ibd": [],
}
#: Files of kernels that no default study launches, or that this machine cannot run; those of wgmma
#: are compiled as variants.
ELSEWHERE = {
    *("engine/bitgemm_wgmma", "engine/bitgemm_popc", "engine/site_pairs", "relatives/matches"),
    *("ibd/candidates", "maps/density", "distance/near_lists", "distance/points"),
    "copying/copying",
}
_KERNEL = re.compile(r'extern "C" __global__ void[^{;]*?(\w+)\((?=[^()]*\)\s*\{)')


class Recorder:
    """What is launched: names, and files with their definitions."""

    def __init__(self, monkeypatch) -> None:
        self.names, self.compiled, options = set(), set(), KernelSource.options

        def recorded(source, defines):
            self.compiled.add((source.file, tuple(defines)))
            return options(source, defines)

        monkeypatch.setattr(KernelSource, "options", recorded)
        start = Kernel.__init__

        def named(kernel, machine, library, name):
            start(kernel, machine, library, name)
            self.names.add(name)
            if not self.runs:
                kernel.launch = lambda *_: None

        self.runs = False
        monkeypatch.setattr(Kernel, "__init__", named)

    def forget(self) -> None:
        from popdesic.engine import compile_gpu

        compile_gpu.load_function.cache_clear()
        self.compiled.clear()


@pytest.fixture
def recorder(machine, monkeypatch) -> Recorder:
    monkeypatch.setattr(closure, "PANEL", 128)
    monkeypatch.setattr(rehearsal, "SAMPLES", 24)
    monkeypatch.setattr(rehearsal, "SITES", 320)
    monkeypatch.setattr(rehearsal, "COUNTED", (24,))
    return Recorder(monkeypatch)


def rehearse(recorder: Recorder, name: str) -> set:
    """What one rehearsal compiles."""
    from popdesic.engine.backend_gpu import GpuBackend

    recorder.forget()
    recorder.runs = name == "products"  # ways of rare sites follow from counts
    rehearsal.rehearsals()[name](GpuBackend.unmeasured(0))
    recorder.runs = False
    found = set(recorder.compiled)
    recorder.forget()
    return found


def close(backend, rng) -> None:
    for number in NUMBERS:
        resident = backend.minplus().hold(np.ones((300, 300)).astype(number))
        closure.close_paths(resident, backend)


def multiply(backend, rng) -> None:
    for terms in (SQUARED, KINSHIP):
        for masked in (False, True):
            a, b = (rehearsal.draw_planes(rng, n, 100, masked) for n in rng.integers(1, 300, 2))
            backend.bitgemm(a, b, terms)
            backend.bitgemm(a, None, terms)
            screen_pairs(backend, a, b, SCREENS["usual"], 3)
            screen_pairs(backend, a, None, SCREENS["all"], 2)


def correlate(backend, rng) -> None:
    for masked in (False, True):
        r2_matrix(rehearsal.draw_planes(rng, int(rng.integers(2, 300)), 50, masked), backend)


def project(backend, rng) -> None:
    rows = rng.integers(0, 256, (60, 9), np.uint8)
    calls = Calls((rows,), None, (np.ones(36, bool),), np.full(60, 0.3))
    found = backend.genotype_products(calls)
    for k in rng.integers(1, 80, 3):
        found.normal(rng.normal(size=(36, k)))
    space = Krylov(RelationshipProducts(found), rng.normal(size=(36, 16)), found.columns)
    space.search(2)


def relate(backend, rng) -> None:
    n = int(rng.integers(2, 200))
    pairs = expected_kinship(backend, np.ones((n, 3)), 100)
    for first in (0, 64):
        pairs.add(first, rng.integers(-1, 3, (36, n)).astype(np.int8), rng.random((36, 3)))
    pairs.divide()
    pairs.subtract(np.zeros((3, n)), np.zeros((3, n)))
    pairs.squares(np.ones(n, bool))
    pairs.close(0.0)
    pairs.scale(np.ones(n))
    pairs.own()


def lay_out(backend, rng) -> None:
    lay_out_of(backend, draw_layout(20, 0.5, 1000, epochs=2))


#: What jobs do, on other sizes than the rehearsals.
WORK = {
    "close_paths": close,
    "measure_row": multiply,
    "measure_ld": correlate,
    "define_axes": project,
    "relate_samples": relate,
    "compute_umap": lay_out,
}


@pytest.mark.parametrize("rule", WORK)
def test_jobs_launch_what_was_rehearsed(recorder, rng, rule):
    from popdesic.engine.backend_gpu import GpuBackend

    known = set().union(*(rehearse(recorder, name) for name in RULES[rule]))
    backend = GpuBackend(measures=False, rare_sites=False)
    with np.errstate(all="ignore"):
        WORK[rule](backend, rng)
    assert recorder.compiled
    assert recorder.compiled <= known


def test_every_rule_with_a_gpu_has_a_rehearsal():
    """One that is new in the workflow is entered in RULES."""
    profile = yaml.safe_load((HOME / "slurm/config.yaml").read_text())["set-resources"]
    assert {rule for rule, one in profile.items() if one.get("slurm_partition") == "gpu"} == set(
        RULES
    )
    assert {name for names in RULES.values() for name in names} == set(rehearsal.rehearsals())


def test_every_kernel_of_a_default_study_is_rehearsed(recorder):
    """One that is new in a file of these kernels is launched by a rehearsal."""
    for name in rehearsal.rehearsals():
        if name not in ("neighbors", *CLOSURES[1:]):
            rehearse(recorder, name)
    files = {
        str(path.relative_to(KERNEL_FOLDER).with_suffix("")): path
        for path in KERNEL_FOLDER.rglob("*.cu")
        if "epistasis" not in str(path)
    }
    assert set(files) >= ELSEWHERE
    wanted = {
        name for file in set(files) - ELSEWHERE for name in _KERNEL.findall(files[file].read_text())
    }
    assert len(wanted) > 10
    assert wanted <= recorder.names
