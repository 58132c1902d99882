"""All CUDA sources compile, those of the benchmarks too; no GPU is needed for that.

Without --slow, one launch of each file for each capability.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.compiling import compile_kernel, compile_source, require_compiler
from support.launches import HOPPER, scan_shape
from support.sources import SOURCES

from popdesic.copying import copying_launches_plan
from popdesic.core.places import KERNEL_FOLDER
from popdesic.distance.nearest import SHARES
from popdesic.distance.nearest_plan import FORMS
from popdesic.engine import minplus_plan, tune_plan
from popdesic.engine.layout import Pass
from popdesic.engine.sources import read_source
from popdesic.engine.variants import defines_of
from popdesic.epistasis import scan_plan
from popdesic.ibd import candidates_plan
from popdesic.relatives import expected_plan

BENCH = Path(__file__).resolve().parents[1] / "bench"
XOR = Pass((), (0, 1, 4))


def of_micro_kernel(kernel: str) -> tuple[tuple[str, int], ...]:
    """Definitions of the first variant that would be measured."""
    return defines_of(tune_plan.variants_to_measure(HOPPER, kernel)[0], XOR, True)


def of_scan(
    core: str,
    order: int = 3,
    *,
    interaction: bool = False,
    residuals: bool = False,
    logs: bool = False,
    quads: bool = False,
    **given,
) -> tuple:
    """Definitions of a scan, of triples if nothing else is said."""
    states, split_cells, split_accumulators = (
        given.pop("states", 2),
        given.get("split_cells", 0),
        given.get("split_accumulators", 0),
    )
    x_states, operand_sites = given.get("x_states", 0), given.get("operand_sites", 1)
    if operand_sites == 2:
        given["parts"] = scan_plan.operand_segments(x_states or states, operand_sites) // 2
    shape = scan_shape(scan_plan.CORES[core], order=order, states=states, **given)
    of_all = scan_plan.scan_defines(
        split_cells=split_cells,
        split_accumulators=split_accumulators,
        states=states,
        interaction=interaction,
        residuals=residuals,
        logs=logs,
        x_states=x_states,
        operand_sites=operand_sites,
        quads=int(order == 4 or quads),
    )
    return tuple((of_all | shape.defines).items())


def of_form(code: int) -> tuple[tuple[str, int], ...]:
    """Definitions of the lists of nearest people by one form of a distance."""
    return (("FORM", code), ("N_OUTPUTS", {SHARES: 6, FORMS["MATCHES"]: 5}.get(code, 2)))


SPLIT_ACCUMULATORS = {"split_cells": 1, "split_accumulators": 1}
RESIDUALS = {"interaction": True, "residuals": True, **SPLIT_ACCUMULATORS}
WGMMA, MMA = of_micro_kernel("wgmma"), of_micro_kernel("mma")
#: Files of kernels/, the architecture that each is compiled for here, and one set of definitions as
#: a launch makes it.
KERNELS = [
    ("engine/pack_finish", "75", ()),
    ("engine/bitgemm_wgmma", "90a", WGMMA),
    ("engine/bitgemm_wgmma", "90a", (*WGMMA, ("R2", 1))),
    ("engine/bitgemm_mma", "80", MMA),
    ("engine/bitgemm_popc", "75", of_micro_kernel("popc")),
    ("relatives/matches", "80", (("N_PLANES", 2),)),
    (
        "epistasis/compact_score",
        "75",
        tuple(scan_plan.scan_defines(split_cells=0, states=2).items()),
    ),
    ("epistasis/sm90_deep", "90a", of_scan("deep")),
    ("epistasis/sm90_fused", "90a", of_scan("wgmma")),
    ("epistasis/sm90_fused", "90a", of_scan("middle")),
    ("epistasis/multistage", "80", of_scan("mma")),
    ("epistasis/multistage", "75", of_scan("popc")),
    *(
        (scan_plan.CORES[core].source.file, arch, of_scan(core, interaction=True, **given))
        for core, arch in (("deep", "90a"), ("wgmma", "90a"), ("mma", "80"))
        for given in (
            {},
            {"order": 2},
            {"order": 2, "table": 1},
            {"order": 2, "table": 1, "split_cells": 1},
        )
        if core != "wgmma" or given.get("order") != 2 or given.get("table")  # `deep` scores pairs
    ),
    ("epistasis/sm90_deep", "90a", of_scan("deep", 2, states=3, interaction=True)),
    *(
        (scan_plan.CORES[core].source.file, arch, of_scan(core, logs=True, **given))
        for core, arch in (("deep", "90a"), ("wgmma", "90a"), ("mma", "80"), ("popc", "75"))
        for given in ({}, {"split_cells": 1})
    ),
    *(
        (scan_plan.CORES[core].source.file, arch, of_scan(core, 2, states=states, **RESIDUALS))
        for core, arch in (("deep", "90a"), ("mma", "80"), ("popc", "75"))
        for states in (2, 3)
    ),
    ("epistasis/multistage", "80", of_scan("mma", states=3, sites_only=True, interaction=True)),
    *(
        (scan_plan.CORES[core].source.file, arch, of_scan(core, x_states=3, **given))
        for core, arch, given in (
            *((c, a, {"order": 2}) for c, a in (("deep", "90a"), ("mma", "80"), ("popc", "75"))),
            ("deep", "90a", {"order": 2, "interaction": True, **SPLIT_ACCUMULATORS}),
            ("mma", "80", {"order": 2, "interaction": True, **SPLIT_ACCUMULATORS}),
            ("deep", "90a", {}),
            ("deep", "90a", {"operand_sites": 2}),
            ("deep", "90a", {"interaction": True, **SPLIT_ACCUMULATORS}),
            ("mma", "80", {"sites_only": True}),
            ("popc", "75", {"sites_only": True, "interaction": True, **SPLIT_ACCUMULATORS}),
        )
    ),
    *(
        (
            scan_plan.CORES[core].source.file,
            arch,
            of_scan(core, states=states, **given, **SPLIT_ACCUMULATORS),
        )
        for core, arch in (("deep", "90a"), ("mma", "80"), ("popc", "75"))
        for states in (2, 3)
        for given in ({"sites_only": core != "deep"}, {"order": 2}, {"order": 2, "table": 1})
    ),
    *(
        (
            "epistasis/compact_score",
            "75",
            tuple(
                scan_plan.scan_defines(
                    split_cells=split_cells,
                    split_accumulators=split_cells,
                    states=2,
                    interaction=True,
                    residuals=residuals,
                ).items()
            ),
        )
        for split_cells, residuals in ((0, False), (1, False), (1, True))
    ),
    *(
        (
            scan_plan.CORES[core].source.file,
            arch,
            of_scan(core, 4, states=states, sites_only=True, logs=True, **given),
        )
        for core, arch in (("deep", "90a"), ("mma", "80"), ("popc", "75"))
        for states in (2, 3)
        for given in ({}, SPLIT_ACCUMULATORS)
    ),
    ("epistasis/sm90_deep", "90a", of_scan("deep", 2, table=1, quads=True)),
    *(
        (
            "epistasis/compact_score",
            "75",
            tuple(scan_plan.scan_defines(split_cells=split_cells, states=states, quads=1).items()),
        )
        for split_cells, states in ((0, 2), (1, 3))
    ),
    *(
        ("engine/minplus", "75", minplus_plan.shape_of(d, HOPPER.shared_bytes).defines)
        for d in minplus_plan.SHAPES
    ),
    ("engine/rare_sites", "75", ()),
    *(("distance/near_lists", arch, of_form(f)) for arch in ("75", "90a") for f in FORMS.values()),
    ("relatives/screen", "75", (("N_OUTPUTS", 5),)),
    ("distance/points", "75", ()),
    ("engine/band", "75", ()),
    ("engine/site_pairs", "75", ()),
    *(
        (f"engine/{file}", arch, (("TILES", tiles),))
        for file in ("code_sums", "genotype_passes")
        for arch, tiles in (("80", 1), ("90a", 4))
    ),
    ("engine/columns", "75", ()),
    *(("relatives/expected", arch, expected_plan.kinship_defines()) for arch in ("80", "90a")),
    *(("maps/epoch", arch, (("DRAWS", 5),)) for arch in ("75", "80", "90a")),
    ("maps/density", "75", ()),
    *(("population/group_counts", "75", (("COUNT_BYTES", size),)) for size in (2, 4)),
    *(
        ("ibd/candidates", arch, candidates_plan.Shape.of(bits).defines)
        for arch, bits in (("80", 128), ("90a", 256))
    ),
    *(
        ("copying/copying", arch, copying_launches_plan.defines_for(n, backward))
        for arch, n in (("75", 100), ("80", 1088), ("90a", 65536))
        for backward in (False, True)
    ),
]


@pytest.fixture(autouse=True)
def _compiler() -> None:
    require_compiler("90a")


def is_first(number: int) -> bool:
    """Whether a launch is the first of its file for a capability; --slow compiles the others."""
    return KERNELS[number][:2] not in [one[:2] for one in KERNELS[:number]]


@pytest.mark.parametrize("number", [n for n in range(len(KERNELS)) if is_first(n)])
def test_kernel_compiles(number):
    compile_kernel(*KERNELS[number])


@pytest.mark.slow
@pytest.mark.parametrize("number", [n for n in range(len(KERNELS)) if not is_first(n)])
def test_further_launch_compiles(number):
    compile_kernel(*KERNELS[number])


@pytest.mark.parametrize(("name", "capability", "defines"), [KERNELS[0], KERNELS[3], KERNELS[7]])
def test_a_missing_definition_is_named(name, capability, defines):
    """The first of a kernel's common definitions is left out."""
    options = SOURCES[name].options(defines)
    with pytest.raises(pytest.fail.Exception, match=r"TILE_ROWS .* come from engine/layout"):
        compile_source(read_source(name), capability, options[:1] + options[2:])


def test_a_record_of_another_size_is_refused():
    options = SOURCES["engine/pack_finish"].options((("STEP_BYTES", 24),))
    with pytest.raises(pytest.fail.Exception, match="laid out like Step"):
        compile_source(read_source("engine/pack_finish"), "75", options)


@pytest.mark.parametrize(
    ("name", "capability", "defines"), [KERNELS[1], KERNELS[3], *KERNELS[7:11]]
)
def test_a_launch_with_too_little_shared_memory_is_refused(name, capability, defines):
    """Slots, counts, margins and barriers are added up by the kernel itself."""
    shared = dict(defines)["LAUNCH_SHARED"]
    options = SOURCES[name].options(
        tuple((dict(defines) | {"LAUNCH_SHARED": shared - 2048}).items())
    )
    with pytest.raises(pytest.fail.Exception, match="is for another kernel"):
        compile_source(read_source(name), capability, options)


def test_every_kernel_file_is_compiled():
    files = KERNEL_FOLDER.rglob("*.cu")
    files = {str(path.relative_to(KERNEL_FOLDER).with_suffix("")) for path in files}
    assert {name for name, *_ in KERNELS} == files


def test_kernels_of_the_benchmarks_compile(monkeypatch):
    pytest.importorskip("cupy", reason="the benchmarks import CuPy")
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # commandline.py changes these two
    monkeypatch.setenv("PYTHONPATH", "")
    import bench_bitgemm_gpu
    import bench_epistasis
    import bench_minplus_gpu
    import copying_rates_gpu
    import spectra_gpu

    def compile_beside(name: str, text: str, capability: str, defines: tuple = ()) -> None:
        compile_source(read_source(name) + text, capability, SOURCES[name].options(defines))

    compile_beside("engine/bitgemm_wgmma", bench_bitgemm_gpu.LIMIT_WGMMA, "90a", WGMMA)
    compile_beside("engine/bitgemm_mma", bench_bitgemm_gpu.LIMIT_MMA, "80", MMA)
    compile_source(bench_bitgemm_gpu.LIMIT_POPC, "75")
    compile_source(bench_epistasis.DRAW, "75")
    compile_source(bench_minplus_gpu.LIMITS, "90")
    compile_source(copying_rates_gpu.LIMIT, "90")
    compile_beside("engine/pack_finish", spectra_gpu.DRAW_BITS, "75")
    compile_source((BENCH / "mosaics.cu").read_text(), "80")
