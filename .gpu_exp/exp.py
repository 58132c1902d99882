import sys; sys.path[:0]=['workflow/scripts','tests/bench']
import cupy, numpy as np, time
import bench_bitgemm_gpu as b
from popdesic.backend import kernels as k
from popdesic.backend.base import SQUARED
d=k.Device.current()
V=lambda n,**p: k.Variant(n,tuple(sorted(p.items())))
mode=sys.argv[1]
def one(n,sites,v,pad,group,splits=1,reps=3,words=None):
    k.PAD_TILES=pad; k.BLOCK_GROUP=group
    p=b.Problem(d,v,words,sites,SQUARED)
    t=b.time_events(lambda:p.multiply(splits),reps,1)
    print(f"{n} x {sites} {v.label} pad={pad} group={group} splits={splits}: {t*1e3:.2f} ms {b.site_pairs(n,sites)/t/1e12:.0f} T",flush=True)
    del p; cupy.get_default_memory_pool().free_all_blocks()
if mode=='ncu':
    words=b.draw_planes(16384,1<<20,False)
    for v in (V('wgmma',CLUSTER=2,LOCKSTEP=0,STAGES=4),V('wgmma',CLUSTER=2,LOCKSTEP=16,STAGES=4),V('mma',B_TILES=2,STAGES=4)):
        p=b.Problem(d,v,words,1<<20,SQUARED); p.multiply(1); cupy.cuda.Device().synchronize(); del p; cupy.get_default_memory_pool().free_all_blocks()
else:
    words=b.draw_planes(16384,1<<20,False)
    for pad in (0,1,3):
        for L in (0,4,16,64): one(16384,1<<20,V('wgmma',CLUSTER=2,LOCKSTEP=L,STAGES=4),pad,8,words=words)
    for g in (4,12,16):
        for L in (0,16): one(16384,1<<20,V('wgmma',CLUSTER=2,LOCKSTEP=L,STAGES=4),1,g,words=words)
    one(16384,1<<20,V('wgmma',CLUSTER=1,LOCKSTEP=16,STAGES=4),1,8,words=words)
    for v in (V('mma',B_TILES=2,STAGES=4),V('mma',B_TILES=1,STAGES=3)): one(16384,1<<20,v,1,8,words=words)
    for s in (1<<16,1<<18):
        w=cupy.ascontiguousarray(words[:,:,:s//64])
        for L in (0,16): one(16384,s,V('wgmma',CLUSTER=2,LOCKSTEP=L,STAGES=4),1,8,words=w)
        one(16384,s,V('wgmma',CLUSTER=1,LOCKSTEP=0,STAGES=4),1,8,words=w)
    del words,w; cupy.get_default_memory_pool().free_all_blocks()
    words=b.draw_planes(2000,1<<22,False)
    for L in (0,4,16): one(2000,1<<22,V('wgmma',CLUSTER=2,LOCKSTEP=L,STAGES=4),1,8,None,words=words)
    for v in (V('mma',B_TILES=2,STAGES=4),V('mma',B_TILES=1,STAGES=3)): one(2000,1<<22,v,1,8,11,words=words)
    del words; cupy.get_default_memory_pool().free_all_blocks()
    try: t=b.time_cublas_int8(16384,1<<20,2); print('int8',t)
    except Exception as e: print('int8',e)
    try: t=b.time_cublas_int8(16384,1<<18,2); print('int8 256k',t)
    except Exception as e: print('int8',e)
