"""The kernels that plans launch on a card, as they are compiled for it; no GPU is needed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from popdesic.copying import copying_launches_plan
from popdesic.engine import genotype_plan, minplus_plan, tune_plan
from popdesic.engine.columns import WIDTH
from popdesic.engine.devices import scan_kernels
from popdesic.engine.genotype_plan import PASS_THREADS, SUM_WARPS
from popdesic.engine.site_pairs_plan import BAND_WARPS
from popdesic.engine.terms import PRODUCT, SQUARED
from popdesic.engine.variants import MICRO_KERNELS, defines_of, launch_shape
from popdesic.epistasis import scan_plan as plans
from popdesic.ibd import candidates_plan
from popdesic.maps.layouts_plan import UMAP_THREADS
from popdesic.maps.umap_layout import DRAWS
from popdesic.population.group_counts_plan import COUNT_THREADS
from popdesic.relatives import expected_plan, matches_plan
from popdesic.relatives.matches_plan import KEEP_THREADS, SCAN_WARPS
from support.cards import Card
from support.launches import scan_shape

#: Threads of a thread block whose kernel is not in `Compiled.threads`.
USUAL_THREADS = 256
#: Scores that are compiled differently; the others are those of `k2_excess`.
SCORED = ("k2", "k2_excess", "interaction")


@dataclass(frozen=True)
class Compiled:
    """One kernel file with the definitions of a launch.

    Attributes
    ----------
    threads, shared : dict
        Kernel -> threads of a thread block, and bytes of shared memory that a launch asks for.
    resident : dict
        Kernel -> thread blocks that a multiprocessor must hold; 1 if nothing else is said.
    """

    label: str
    file: str
    defines: tuple[tuple[str, int], ...]
    threads: dict[str, int] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    resident: dict[str, int] = field(default_factory=dict)


def variants_of(card: Card) -> list[Compiled]:
    """Everything that may be launched on a card."""
    parts = (products, scans, scores, paths, others)
    return [one for part in parts for one in part(card)]


def products(card: Card) -> Iterator[Compiled]:
    """Of the bit-GEMM, in all forms that are measured."""
    for variant in tune_plan.variants_to_measure(card.device()):
        for terms, complete in itertools.product((SQUARED, PRODUCT), (True, False)):
            plan, shape = tune_plan.plan_for(variant, terms, complete), launch_shape(variant)
            name = f"bitgemm_{variant.kernel}"
            for number, one in enumerate(plan.passes):
                yield Compiled(
                    f"{variant.label} {len(terms.outputs)} {complete} {number}",
                    MICRO_KERNELS[variant.kernel][0].file,
                    defines_of(variant, one, complete),
                    {name: shape.threads},
                    {name: shape.shared_bytes},
                    {name: shape.resident},
                )


def scans(card: Card) -> Iterator[Compiled]:
    """Of epistasis, by every core that the card's kernels choose."""
    cores = {
        (name, order, states, x_states)
        for kernel, order, (states, x_states), steps in itertools.product(
            scan_kernels(card.device()), (2, 3), ((2, 2), (2, 3), (3, 3)), (0.0, 30.0, 1e9)
        )
        for name, core in plans.CORES.items()
        if core is plans.choose_core(kernel, order, states, steps, x_states=x_states)
    }
    for name, order, states, x_states in sorted(cores):
        of_x = {"x_states": x_states}
        joints = (1, 2) if plans.CORES[name].epilogue_workspace and order == 3 else (1,)
        for split_cells, kind, operand_sites in itertools.product((0, 1), SCORED, joints):
            yield scan(
                card,
                name,
                order,
                states,
                split_cells=split_cells,
                kind=kind,
                operand_sites=operand_sites,
                **of_x,
            )
        if order == 2 and states == x_states:
            for split_cells in (0, 1):
                yield scan(card, name, 2, states, split_cells=split_cells, table=1)
            yield scan(card, name, 2, states, split_cells=1, split_accumulators=1, table=1)
            yield scan(card, name, 2, states, split_cells=1, split_accumulators=1, kind="residuals")
        # counts share a word; no room (`test_scans_fit_every_card`)
        room = (order, states) != (3, 3) or card.shared_bytes >= plans.MMA_SPLIT_BYTES
        if not plans.CORES[name].epilogue_subtiles and room:
            for kind in SCORED:
                yield scan(
                    card,
                    name,
                    order,
                    states,
                    split_cells=1,
                    split_accumulators=1,
                    kind=kind,
                    **of_x,
                )


def scan(
    card: Card,
    name: str,
    order: int,
    states: int,
    *,
    split_cells: int = 0,
    split_accumulators: int = 0,
    kind: str = "k2",
    table: int = 0,
    operand_sites: int = 1,
    x_states: int = 0,
) -> Compiled:
    """One scan by one core; `kind`: one of `SCORED`, or residuals."""
    core, x_states = plans.CORES[name], x_states or states
    parts = plans.operand_segments(x_states, operand_sites) // 2 if order == 3 else 1
    shape = scan_shape(
        core,
        order,
        states,
        table=table,
        split_cells=split_cells,
        sites_only=plans.keeps_sites_only(core, order, x_states, split_accumulators),
        lockstep=plans.LOCKSTEP,
        parts=parts,
        operand_sites=operand_sites,
        split_accumulators=split_accumulators,
        x_states=x_states,
        device=card.device(),
    )
    of_all = common_defines(states, split_cells, split_accumulators, operand_sites, kind, x_states)
    label = (
        f"{kind}{' cells' * split_cells}{' accumulators' * split_accumulators}{' table' * table}"
    )
    return Compiled(
        f"scan {name} {order} {states_of(states, x_states)} {label} {operand_sites}",
        core.source.file,
        tuple(sorted((of_all | shape.defines).items())),
        {"epistasis_scan": core.threads},
        {"epistasis_scan": shape.shared_bytes},
    )


def states_of(states: int, x_states: int) -> str:
    """Stored states of y and z, and of x if they are others."""
    return str(states) if states == x_states else f"{states}/{x_states}"


def common_defines(
    states: int,
    split_cells: int,
    split_accumulators: int,
    operand_sites: int,
    kind: str,
    x_states: int = 0,
) -> dict[str, int]:
    """What all kernels of one scan are compiled with."""
    return plans.scan_defines(
        x_states=x_states,
        split_cells=split_cells,
        split_accumulators=split_accumulators,
        states=states,
        operand_sites=operand_sites,
        interaction=kind in ("interaction", "residuals"),
        residuals=kind == "residuals",
        logs=kind == "k2",
    )


def scores(card: Card) -> Iterator[Compiled]:
    """What makes the operands of scans, and scores their records."""
    for (states, x_states), (
        split_cells,
        split_accumulators,
    ), operand_sites, kind in itertools.product(
        ((2, 2), (2, 3), (3, 3)),
        ((0, 0), (1, 0), (1, 1)),
        (1, 2),
        (*SCORED, "residuals"),
    ):
        known = split_accumulators and states == x_states if kind == "residuals" else True
        if scan_kernels(card.device()) and known:
            defines = common_defines(
                states, split_cells, split_accumulators, operand_sites, kind, x_states
            )
            numbers = f"{split_cells} {split_accumulators} {operand_sites}"
            label = f"scores {states_of(states, x_states)} {numbers} {kind}"
            yield Compiled(label, "epistasis/compact_score", tuple(sorted(defines.items())))


def paths(card: Card) -> Iterator[Compiled]:
    """Shortest paths in each number type."""
    for dtype in minplus_plan.SHAPES:
        shape = minplus_plan.shape_of(dtype, card.shared_bytes)
        yield Compiled(
            f"minplus {dtype}",
            "engine/minplus",
            shape.defines,
            {"minplus": minplus_plan.THREADS},
            {"minplus": shape.shared_bytes},
            {"minplus": 1},
        )


def others(card: Card) -> Iterator[Compiled]:
    """Planes, rare sites, layouts of maps, populations, searches, sums of genotypes, descent."""
    device = card.device()
    yield Compiled("pack", "engine/pack_finish", ())
    yield Compiled("rare", "engine/rare_sites", ())
    yield Compiled(
        "umap",
        "maps/epoch",
        (("DRAWS", DRAWS),),
        dict.fromkeys(("add_forces", "move_points"), UMAP_THREADS),
        resident={"add_forces": 2 if device.has(80) else 1},
    )
    threads = dict.fromkeys(
        ("sum_spreads", "measure_radii", "weigh_radii", "add_density"), UMAP_THREADS
    )
    yield Compiled("umap density", "maps/density", (), threads)
    threads = dict.fromkeys(("sum_samples", "add_sites", "interleave_counts"), COUNT_THREADS)
    for size in (2, 4):
        defines = (("COUNT_BYTES", size),)
        yield Compiled(f"populations {size}", "population/group_counts", defines, threads)
    yield Compiled("band", "engine/band", (), {"band_r2": 32 * BAND_WARPS})
    if matches_plan.can_find_matches(device, None):
        threads = {"scan_profiles": 32 * SCAN_WARPS, "keep_best": KEEP_THREADS}
        for planes in (1, 2, 3):
            yield Compiled(
                f"search {planes}", "relatives/matches", (("N_PLANES", planes),), threads
            )
    if device.has(80):
        for tiles in range(1, genotype_plan.MOST_TILES + 1):
            launch = genotype_plan.plan_sums(4096, 4096, tiles, device.multiprocessors)
            yield Compiled(
                f"sums {tiles}",
                "engine/code_sums",
                (("TILES", tiles),),
                {"sum_codes": 32 * SUM_WARPS},
                {"sum_codes": launch.shared},
            )
            others = ("split_signed", "share_numbers", "standardise_sites", "add_people")
            yield Compiled(
                f"passes {tiles}",
                "engine/genotype_passes",
                (("TILES", tiles),),
                dict.fromkeys((*others, "add_spreads"), PASS_THREADS)
                | {"sum_tiles": 32 * SUM_WARPS},
                {"sum_tiles": launch.shared},
            )
        names = ("add_products", "add_combination", "add_own_products", "add_own")
        yield Compiled("columns", "engine/columns", (), dict.fromkeys(names, WIDTH * WIDTH))
    if device.has(expected_plan.LEAST_CAPABILITY):
        pairs = ("subtract_products", "divide_roots", "sum_squares", "list_close")
        yield Compiled(
            "expected kinship",
            "relatives/expected",
            expected_plan.kinship_defines(),
            dict.fromkeys(("expect_genotypes", *pairs), expected_plan.PAIR_THREADS)
            | {"multiply_digits": expected_plan.PRODUCT_THREADS},
            {"multiply_digits": expected_plan.SHARED_BYTES},
        )
    if device.has(candidates_plan.LEAST_CAPABILITY):
        for bits in (128, 256):
            shape = candidates_plan.Shape.of(bits)
            yield Compiled(
                f"ibd {bits}",
                "ibd/candidates",
                shape.defines,
                {"find_runs": shape.threads},
                {"find_runs": shape.shared_bytes},
            )
    for n in (1000, 5008, 65_536):
        for backward in (False, True):
            shape = copying_launches_plan.shapes_for(n)[backward]
            yield Compiled(
                f"copying {n} {('copy_forward', 'copy_backward')[backward]}",
                "copying/copying",
                copying_launches_plan.defines_for(n, backward),
                {("copy_forward", "copy_backward")[backward]: 32 * shape.warps},
            )
