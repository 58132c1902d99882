// People of bench_ibd_mosaics.py, drawn as planes: one thread draws 64 sites of one person.
//
// words: u64 (n_people, 3, n_words), planes of carriers, of homozygotes, of called genotypes. A
// genotype is the sum of two haplotypes. In each block of `block_sites` sites a haplotype is one of
// 8, by bits of a hash of person and block; bit h of alleles[site] is the allele of haplotype h.
// Person 2 k + 1 has the first haplotype of person 2 k at the sites start ... end - 1 of each
// contig, planted[k][contig]. A genotype is wrong or missing by a hash of person and site below
// `wrong` or from `missing` on, in units of 2^-32. No count exceeds 64 bits.

typedef unsigned int u32;
typedef unsigned long long u64;

// SplitMix64 (Steele, Lea and Flood 2014).
__device__ __forceinline__ u64 mixed(u64 z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

__device__ __forceinline__ u64 mixed(u64 stream, u64 person, u64 place) {
    return mixed(stream * 0xd1342543de82ef95ull + person * 0x9e3779b97f4a7c15ull + mixed(place));
}

extern "C" __global__ void draw(u64* words, long long n_people, int n_words, int n_sites,
                                int block_sites, int contig_sites, int n_contigs,
                                const unsigned char* alleles, const int2* planted, u32 wrong,
                                u32 missing) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= n_people * n_words) return;
    const u64 person = thread / n_words;
    const int word = (int)(thread % n_words), begin = 64 * word;
    u64 carrier = 0, both = 0, called = 0, own = 0, other = 0;
    int block = -1;
    for (int bit = 0; bit < 64 && begin + bit < n_sites; ++bit) {
        const int site = begin + bit;
        if (site / block_sites != block) {
            block = site / block_sites;
            own = mixed(1, person, block);
            other = mixed(1, person & ~1ull, block);
        }
        const int2 stretch = planted[(person >> 1) * n_contigs + site / contig_sites];
        const bool shares = (person & 1) && site >= stretch.x && site < stretch.y;
        const u32 one = alleles[site] >> ((shares ? other : own) & 7) & 1;
        const u32 two = alleles[site] >> (own >> 3 & 7) & 1;
        const u32 chance = (u32)(mixed(2, person, site) >> 32);
        if (chance >= missing) continue;
        u32 genotype = one + two;
        if (chance < wrong) genotype = genotype == 2 ? 0 : genotype + 1;
        called |= 1ull << bit;
        if (genotype > 0) carrier |= 1ull << bit;
        if (genotype > 1) both |= 1ull << bit;
    }
    u64* out = words + person * 3 * n_words + word;
    out[0] = carrier;
    out[n_words] = both;
    out[2 * n_words] = called;
}
