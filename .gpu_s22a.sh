mkdir -p $OUT
( python3 - <<'P'
from concurrent.futures import ProcessPoolExecutor
from popdesic.engine.cpu import precompile as p
names = ("shortest_paths", "scans_of_cases", "scans_of_traits", "tests_of_interaction", "pairs_of_sites", "products_of_planes")
ids = [i for i, g in enumerate(p.GROUPS) if g.__name__ in names]
with ProcessPoolExecutor(6) as pool: print("numba", list(pool.map(p._timed, ids)))
P
) &
B="timeout 40 python3 tests/bench/bench_epistasis.py --scores k2 --share 0.1"
s=$(date +%s)
$B --cases dcDr --kernel mma 2>&1 | cut -c1-100
$B --cases dcDr --kernel mma --shared-bytes 101376 2>&1 | cut -c1-100
$B --cases d --kernel popc 2>&1 | cut -c1-100
$B --cases d --kernel popc --shared-bytes 65536 2>&1 | cut -c1-100
echo BENCH $(( $(date +%s) - s )); wait
t() { python3 -m pytest --require-gpu -q -n 14 --dist load -p no:cacheprovider "$@" 2>&1 | tail -12; echo T $(( $(date +%s) - s )); }
timeout 30 bash -c "$(declare -f t); s=$s; t tests/kernels/test_devices_gpu.py tests/kernels/test_compare_gpu.py"
F="tests/kernels/test_epistasis_gpu.py tests/kernels/test_trait_gpu.py tests/kernels/test_minplus_gpu.py tests/kernels/test_compare_gpu.py"
export POPDESIC_GPU_SHARED_BYTES=101376; timeout 45 bash -c "$(declare -f t); s=$s; t $F"
export POPDESIC_GPU_SHARED_BYTES=65536; timeout 35 bash -c "$(declare -f t); s=$s; t $F"
