"""All CUDA sources compile, those of the benchmarks too; no GPU is needed for that, only CuPy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

cupy = pytest.importorskip("cupy", reason="CuPy compiles CUDA: pip install -r requirements-gpu.txt")
from cupy.cuda import nvrtc  # noqa: E402

from popdesic.engine.gpu.sources import read_source  # noqa: E402
from popdesic.io.places import KERNEL_FOLDER  # noqa: E402

BENCH = Path(__file__).resolve().parents[1] / "bench"
WGMMA = ("-DSTAGES=4", "-DCLUSTER=2", "-DLOCKSTEP=2")
MMA = ("-DSTAGES=4", "-DB_TILES=2", "-DLOCKSTEP=0")
XOR = ("-DFORM_XOR=1", "-DMASKED=0", "-DW0=0", "-DW1=1", "-DW2=4")
SCAN = ("-DK2=1", "-DWIDE=0", "-DSTATES=2", "-DJOINT=1", "-DORDER=3", "-DTABLE=1", "-DSTAGES=3")
ON_HOPPER = (*SCAN, "-DCLUSTER=2", "-DLOCKSTEP=0", "-DY_GROUPS=1", "-DUNROLL=2")
ON_OTHERS = (*SCAN, "-DSCRATCH_SHARED=1", "-DY_GROUPS=2", "-DUNROLL=2")
#: Files of kernels/, the architecture that each is compiled for here, and one set of definitions.
KERNELS = [
    ("bitgemm/pack_finish", "75", ()),
    ("bitgemm/sm90_wgmma", "90a", WGMMA),
    ("bitgemm/sm90_wgmma", "90a", (*WGMMA, "-DR2=1")),
    ("bitgemm/sm80_mma", "80", MMA),
    ("bitgemm/simt_popc", "75", ("-DBLOCKS_PER_SM=2", "-DKC=4", *XOR)),
    ("compare/compare", "80", ("-DN_PLANES=2",)),
    ("epistasis/compact_score", "75", SCAN[:4]),
    ("epistasis/sm90_deep", "90a", ON_HOPPER),
    ("epistasis/sm90_fused", "90a", ON_HOPPER),
    ("epistasis/multistage", "80", (*ON_OTHERS, "-DPOPC=0")),
    ("epistasis/multistage", "75", (*ON_OTHERS, "-DPOPC=1")),
    (
        "minplus/minplus",
        "75",
        ("-DNUMBER=0", "-DTM=8", "-DTN=8", "-DSLOTS=3", "-DDEPTH=8", "-DRESIDENT=1"),
    ),
    ("bitgemm/rare_sites", "75", ()),
]


def compile_source(text: str, capability: str, options: tuple[str, ...] = ()) -> None:
    """Compile by NVRTC; fails with the compiler's words."""
    program = nvrtc.createProgram(text, "kernel.cu", [], [])
    try:
        nvrtc.compileProgram(program, (f"-arch=sm_{capability}", "-std=c++17", *options))
    except nvrtc.NVRTCError:
        errors = [line for line in nvrtc.getProgramLog(program).splitlines() if "error" in line]
        pytest.fail("\n".join(errors[:10]))
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize(("name", "capability", "options"), KERNELS)
def test_kernel_compiles(name, capability, options):
    compile_source(read_source(name), capability, options)


def test_every_kernel_file_is_compiled():
    files = KERNEL_FOLDER.rglob("*.cu")
    files = {str(path.relative_to(KERNEL_FOLDER).with_suffix("")) for path in files}
    assert {name for name, *_ in KERNELS} == files


def test_kernels_of_the_benchmarks_compile(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # commandline.py changes these two
    monkeypatch.setenv("PYTHONPATH", "")
    import bench_bitgemm_gpu
    import bench_epistasis
    import bench_minplus_gpu
    import spectra_gpu

    read = read_source
    compile_source(read("bitgemm/sm90_wgmma") + bench_bitgemm_gpu.LIMIT_WGMMA, "90a", WGMMA)
    compile_source(read("bitgemm/sm80_mma") + bench_bitgemm_gpu.LIMIT_MMA, "80", MMA)
    compile_source(bench_bitgemm_gpu.LIMIT_POPC, "75")
    compile_source(bench_epistasis.DRAW, "75")
    compile_source(bench_minplus_gpu.LIMITS, "90")
    compile_source(read("bitgemm/pack_finish") + spectra_gpu.DRAW_BITS, "75")
