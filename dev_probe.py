import sys, time, numpy as np, cupy
sys.path.insert(0,'tests/bench')
import bench_epistasis as B
from popdesic.backend.epistasis_gpu import Scanner
from popdesic.backend.kernels import Device
dev=Device.current()
orig=Scanner._try
LOG=[]
def probe(self, operands, items, first, yz):
    cupy.cuda.get_current_stream().synchronize()
    t=time.perf_counter()
    ok=orig(self, operands, items, first, yz)
    cupy.cuda.get_current_stream().synchronize()
    w=self.core.z_sites(self.order,self.states,self.phased)*64*self.core.cluster*len(operands.batch)*len(items)
    LOG.append((len(items), len(operands.batch), first.start, ok, int(self.number.get()[0]), time.perf_counter()-t, self.cutoff/self.scale, w))
    return ok
Scanner._try=probe
oc=Scanner._compact
CT=[]
def compact(self,*a):
    cupy.cuda.get_current_stream().synchronize(); t=time.perf_counter()
    r=oc(self,*a); cupy.cuda.get_current_stream().synchronize(); CT.append(time.perf_counter()-t); return r
Scanner._compact=compact
def go(order,n,n0,n1,f,stop,kernel=None,phased=None,unroll=2,limit=12,missing=0.0,top=1000,lock=8):
    LOG.clear(); CT.clear()
    data=B.make(order,n,n0,n1,f,missing)
    t=time.perf_counter()
    s=Scanner(data,order,top,None,dev,kernel,phased,unroll,lock)
    (s.pairs if order==2 else s.triples)(range(stop))
    cupy.cuda.get_current_stream().synchronize()
    tot=time.perf_counter()-t
    print(f"== {order} {n}x{n0+n1} m{missing} {kernel} phased {s.phased} u{unroll} lock {lock} total {tot:.3f} compact {sum(CT):.3f} scan {sum(l[5] for l in LOG):.3f} launches {len(LOG)}", flush=True)
    for l in LOG[-limit:] if limit else []: print("   ", l[:5], f"{l[5]*1e3:.2f} ms cut {l[6]:.2f}", f"{l[7]/l[5]/1e9:.2f} G/s {l[7]*(n0+n1)/l[5]/1e12:.0f} T",flush=True)
if __name__=='__main__':
    M=131072
    for turn in range(2): go(3,8192,3072,2048,B.WTCCC,256,limit=2 if turn else 0)
    for ph,lock in ((False,0),(False,8),(True,0),(True,8),(True,2)):
        for turn in range(2): go(3,4096,M,M,B.THIRDS,96,phased=ph,limit=2 if turn else 0,lock=lock)
    for ph,lock in ((False,0),(True,8)):
        for turn in range(2): go(3,8192,M,M,B.TENTHS,52,phased=ph,limit=2 if turn else 0,lock=lock)
    for u in (1,2):
        for turn in range(2): go(3,8192,3072,2048,B.WTCCC,256,limit=2 if turn else 0,missing=0.01,unroll=u)
        for turn in range(2): go(3,4096,M,M,B.THIRDS,31,limit=2 if turn else 0,missing=.01,unroll=u)
