"""Papers of the methods that a study used (`report.methods`)."""

#: What to cite, by key.
REFERENCES = {
    "axes": (
        "Patterson N, Price AL, Reich D (2006) Population structure and eigenanalysis. PLoS "
        "Genetics 2:e190. doi:10.1371/journal.pgen.0020190"
    ),
    "beagle": (
        "Browning BL, Zhou Y, Browning SR (2018) A one-penny imputed genome from next-generation "
        "reference panels. American Journal of Human Genetics 103:338-348. "
        "doi:10.1016/j.ajhg.2018.07.015"
    ),
    "blocks": (
        "Peixoto TP (2014) Hierarchical block structures and high-resolution model selection in "
        "large networks. Physical Review X 4:011047. doi:10.1103/PhysRevX.4.011047"
    ),
    "boost": (
        "Wan X, Yang C, Yang Q, et al. (2010) BOOST: a fast approach to detecting gene-gene "
        "interactions in genome-wide case-control studies. American Journal of Human Genetics "
        "87:325-340. doi:10.1016/j.ajhg.2010.07.021"
    ),
    "coancestry": (
        "Lawson DJ, Hellenthal G, Myers S, Falush D (2012) Inference of population structure using "
        "dense haplotype data. PLoS Genetics 8:e1002453. doi:10.1371/journal.pgen.1002453"
    ),
    "copying": (
        "Li N, Stephens M (2003) Modeling linkage disequilibrium and identifying recombination "
        "hotspots using single-nucleotide polymorphism data. Genetics 165:2213-2233. "
        "doi:10.1093/genetics/165.4.2213"
    ),
    "dip": (
        "Hartigan JA, Hartigan PM (1985) The dip test of unimodality. Annals of Statistics "
        "13:70-84. doi:10.1214/aos/1176346577"
    ),
    "f": (
        "Patterson N, Moorjani P, Luo Y, et al. (2012) Ancient admixture in human history. "
        "Genetics 192:1065-1093. doi:10.1534/genetics.112.145037"
    ),
    "degrees": (
        "Huff CD, Witherspoon DJ, Simonson TS, et al. (2011) Maximum-likelihood estimation of "
        "recent shared ancestry (ERSA). Genome Research 21:768-774. doi:10.1101/gr.115972.110"
    ),
    "fermat": (
        "Hwang SJ, Damelin SB, Hero AO (2016) Shortest path through random points. Annals of "
        "Applied Probability 26:2791-2823. doi:10.1214/15-AAP1162"
    ),
    "fst": (
        "Bhatia G, Patterson N, Sankararaman S, Price AL (2013) Estimating and interpreting FST: "
        "the impact of rare variants. Genome Research 23:1514-1521. doi:10.1101/gr.154831.113"
    ),
    "garud": (
        "Garud NR, Messer PW, Buzbas EO, Petrov DA (2015) Recent selective sweeps in North "
        "American Drosophila melanogaster show signatures of soft sweeps. PLoS Genetics "
        "11:e1005004. doi:10.1371/journal.pgen.1005004"
    ),
    "hdbscan": (
        "Campello RJGB, Moulavi D, Sander J (2013) Density-based clustering based on hierarchical "
        "density estimates. Advances in Knowledge Discovery and Data Mining, 160-172. "
        "doi:10.1007/978-3-642-37456-2_14"
    ),
    "hwe": (
        "Wigginton JE, Cutler DJ, Abecasis GR (2005) A note on exact tests of Hardy-Weinberg "
        "equilibrium. American Journal of Human Genetics 76:887-893. doi:10.1086/429864"
    ),
    "hmmibd": (
        "Schaffner SF, Taylor AR, Wong W, et al. (2018) hmmIBD: software to infer pairwise "
        "identity by descent between haploid genotypes. Malaria Journal 17:196. "
        "doi:10.1186/s12936-018-2349-7"
    ),
    "ibis": (
        "Seidman DN, Shenoy SA, Kim M, et al. (2020) Rapid, phase-free detection of long "
        "identity-by-descent segments enables effective relationship classification. American "
        "Journal of Human Genetics 106:453-466. doi:10.1016/j.ajhg.2020.02.012"
    ),
    "king": (
        "Manichaikul A, Mychaleckyj JC, Rich SS, et al. (2010) Robust relationship inference in "
        "genome-wide association studies. Bioinformatics 26:2867-2873. "
        "doi:10.1093/bioinformatics/btq559"
    ),
    "mantel": (
        "Mantel N (1967) The detection of disease clustering and a generalized regression "
        "approach. Cancer Research 27:209-220."
    ),
    "mixture": (
        "Santander CG, Refoyo Martinez A, Meisner J (2024) Faster model-based estimation of "
        "ancestry proportions. Peer Community Journal 4:e116. doi:10.24072/pcjournal.503"
    ),
    "midp": (
        "Graffelman J, Moreno V (2013) The mid p-value in exact tests for Hardy-Weinberg "
        "equilibrium. Statistical Applications in Genetics and Molecular Biology 12:433-448. "
        "doi:10.1515/sagmb-2012-0039"
    ),
    "nj": (
        "Saitou N, Nei M (1987) The neighbor-joining method. Molecular Biology and Evolution "
        "4:406-425. doi:10.1093/oxfordjournals.molbev.a040454"
    ),
    "pc_relate": (
        "Conomos MP, Reiner AP, Weir BS, Thornton TA (2016) Model-free estimation of recent "
        "genetic relatedness. American Journal of Human Genetics 98:127-148. "
        "doi:10.1016/j.ajhg.2015.11.022"
    ),
    "pcoa": (
        "Gower JC (1966) Some distance properties of latent root and vector methods used in "
        "multivariate analysis. Biometrika 53:325-338. doi:10.1093/biomet/53.3-4.325"
    ),
    "runs": (
        "Purcell S, Neale B, Todd-Brown K, et al. (2007) PLINK: a tool set for whole-genome "
        "association and population-based linkage analyses. American Journal of Human Genetics "
        "81:559-575. doi:10.1086/519795"
    ),
    "oadp": (
        "Zhang D, Dey R, Lee S (2020) Fast and robust ancestry prediction using principal "
        "component analysis. Bioinformatics 36:3439-3446. doi:10.1093/bioinformatics/btaa152"
    ),
    "signs": (
        "Hong D, Sheng Y, Dobriban E (2020) Selecting the number of components in PCA via random "
        "signflips. arXiv:2012.02985"
    ),
    "quadkast": (
        "Fu B, Anand P, Anand A, et al. (2024) A scalable adaptive quadratic kernel method for "
        "interpretable epistasis analysis in complex traits. Genome Research 34:1294-1303. "
        "PMC11529862"
    ),
    "keller": (
        "Keller MC (2014) Gene x environment interaction studies have not properly controlled for "
        "potential confounders: the problem and the (simple) solution. Biological Psychiatry "
        "75:18-24. doi:10.1016/j.biopsych.2013.09.006"
    ),
    "ihs": (
        "Voight BF, Kudaravalli S, Wen X, Pritchard JK (2006) A map of recent positive selection "
        "in the human genome. PLoS Biology 4:e72. doi:10.1371/journal.pbio.0040072"
    ),
    "nsl": (
        "Ferrer-Admetlla A, Liang M, Korneliussen T, Nielsen R (2014) On detecting incomplete soft "
        "or hard selective sweeps using haplotype structure. Molecular Biology and Evolution "
        "31:1275-1291. doi:10.1093/molbev/msu077"
    ),
    "weights": (
        "Roeder K, Wasserman L (2009) Genome-wide significance levels and weighted hypothesis "
        "testing. Statistical Science 24:398-413. doi:10.1214/09-STS289"
    ),
    "snakemake": (
        "Mölder F, Jablonski KP, Letcher B, et al. (2021) Sustainable data analysis with "
        "Snakemake. F1000Research 10:33. doi:10.12688/f1000research.29032.2"
    ),
    "umap": (
        "McInnes L, Healy J, Melville J (2018) UMAP: uniform manifold approximation and "
        "projection for dimension reduction. arXiv:1802.03426"
    ),
    "xp_ehh": (
        "Sabeti PC, Varilly P, Fry B, et al. (2007) Genome-wide detection and characterization of "
        "positive selection in human populations. Nature 449:913-918. doi:10.1038/nature06250"
    ),
    "wc": (
        "Weir BS, Cockerham CC (1984) Estimating F-statistics for the analysis of population "
        "structure. Evolution 38:1358-1370. doi:10.1111/j.1558-5646.1984.tb05657.x"
    ),
}
