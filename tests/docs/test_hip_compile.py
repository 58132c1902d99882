"""The kernels of distances compile for AMD's MI200 and MI300; nothing of this was run on a card.

It takes a clang that knows these cards (19 and later) and the headers of HIP: Debian has them as
`clang-19` and `libamdhip64-dev`. The device's libraries are not linked, so their version is free.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.card_variants import Compiled, variants_of
from support.cards import CARDS
from support.sources import SOURCES

from popdesic.core.places import KERNEL_FOLDER
from popdesic.engine.sources import read_source

ARCHITECTURES = ("gfx90a", "gfx942")
#: Compilers that know both, newest first.
COMPILERS = [f"clang++-{version}" for version in range(22, 18, -1)]
HEADER = Path("/usr/include/hip/hip_runtime.h")
#: What other kernels use that AMD's warps of 64 threads or its assembler do not have.
OF_NVIDIA = re.compile(r"\basm\b|__(?:shfl|ballot|any|all|match|reduce)\w*_sync|__dp[24]a")
#: Kernels that have none of it: the products of distances, their packing and their rounding.
PORTABLE = {"engine/bitgemm_popc", "engine/pack_finish"}


@functools.cache
def compiler() -> str:
    found = next((name for name in COMPILERS if shutil.which(name)), "")
    if not found or not HEADER.is_file():
        pytest.skip("no clang 19 with the headers of HIP: apt-get install clang-19 libamdhip64-dev")
    return found


def of_portable() -> list[Compiled]:
    """What a card without tensor cores of our kind launches of the portable kernels."""
    return [one for one in variants_of(CARDS[75]) if one.file in PORTABLE]


def compile_for(architecture: str, text: str, options: tuple[str, ...], folder: Path) -> str:
    """The assembly of a source; fails with the compiler's words."""
    source, target = folder / "kernel.hip", folder / "kernel.s"
    source.write_text(f"#include <hip/hip_runtime.h>\n{text}")
    command = [compiler(), "-x", "hip", f"--offload-arch={architecture}", "--cuda-device-only"]
    command += ["-nogpulib", "--rocm-path=/usr", "-O2", *options, "-S", "-o", target, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return target.read_text()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("one", of_portable(), ids=lambda one: f"{one.file} {one.label}")
def test_distances_compile_for_amd(one, architecture, tmp_path):
    options = SOURCES[one.file].options(one.defines)
    made = compile_for(architecture, read_source(one.file), options, tmp_path)
    assert f'.amdgcn_target "amdgcn-amd-amdhsa--{architecture}' in made
    for name in one.threads:
        assert re.search(rf"^{name}:", made, re.M), f"{name} is not in what was compiled"
    if "popc" in one.file:
        assert "v_bcnt_u32_b32" in made  # the card's own POPC, not a loop


def test_the_portable_kernels_are_those_without_anything_of_nvidia():
    files = {one.file for one in variants_of(CARDS[75])}
    assert {file for file in files if not OF_NVIDIA.search(read_source(file))} == PORTABLE
    assert all((KERNEL_FOLDER / f"{file}.cu").is_file() for file in PORTABLE)


def test_a_kernel_with_assembly_of_nvidia_does_not_compile(tmp_path):
    compiler()
    with pytest.raises(AssertionError, match="error"):
        options = SOURCES["engine/minplus"].options(())
        compile_for("gfx90a", read_source("engine/minplus"), options, tmp_path)
