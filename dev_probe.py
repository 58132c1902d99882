import sys, time, numpy as np, cupy
sys.path.insert(0,'tests/bench')
import bench_epistasis as B
from popdesic.backend.epistasis_gpu import Scanner
from popdesic.backend.kernels import Device
dev=Device.current()
orig=Scanner._try
LOG=[]
def probe(self, operands, items, first, n_x, yz):
    cupy.cuda.get_current_stream().synchronize()
    t=time.perf_counter()
    ok=orig(self, operands, items, first, n_x, yz)
    cupy.cuda.get_current_stream().synchronize()
    LOG.append((len(items), n_x, first.start, ok, int(self.number.get()[0]), time.perf_counter()-t, self.cutoff/self.scale))
    return ok
Scanner._try=probe
oc=Scanner._compact
CT=[]
def compact(self,*a):
    cupy.cuda.get_current_stream().synchronize(); t=time.perf_counter()
    r=oc(self,*a); cupy.cuda.get_current_stream().synchronize(); CT.append(time.perf_counter()-t); return r
Scanner._compact=compact
def go(order,n,n0,n1,f,stop,kernel='wgmma',cluster=1,unroll=1,limit=12,parts=1):
    LOG.clear(); CT.clear()
    data=B.make(order,n,n0,n1,f)
    s=Scanner(data,order,1000,None,dev,kernel,cluster,unroll,parts)
    t=time.perf_counter()
    (s.pairs if order==2 else s.triples)(range(stop))
    cupy.cuda.get_current_stream().synchronize()
    tot=time.perf_counter()-t
    print(f"== {order} {n}x{n0+n1} {kernel} c{cluster} u{unroll} p{parts} total {tot:.3f} compact {sum(CT):.3f} scan {sum(l[5] for l in LOG):.3f} launches {len(LOG)}", flush=True)
    for l in LOG[:limit]: print("   ", l[:5], f"{l[5]*1e3:.2f} ms cut {l[6]:.2f}", f"{l[0]*l[1]*4096*cluster*(2 if order==2 else 1)/l[5]/1e9:.2f} G/s {l[0]*l[1]*4096*cluster*(2 if order==2 else 1)*(n0+n1)/l[5]/1e12:.0f} T",flush=True)
if __name__=='__main__':
    for p,u in ((2,1),(2,2),(1,2)):
        for turn in range(2): go(3,8192,3072,2048,B.WTCCC,512,unroll=u,limit=7 if turn else 0,parts=p)
    for p,c in ((1,1),(1,2)):
        for turn in range(2): go(3,4096,131072,131072,B.THIRDS,128,parts=p,cluster=c,limit=8 if turn else 0)
        for turn in range(2): go(3,8192,131072,131072,B.TENTHS,64,parts=p,cluster=c,limit=8 if turn else 0)
    for c in (1,2):
        for turn in range(2): go(2,32768,32768,32768,B.THIRDS,32768,cluster=c,limit=8 if turn else 0)
