"""Statistics of populations: diversity, differentiation, f-statistics, runs of homozygosity.

Everything between populations comes from counts of alleles by cohort, population and site
(`counts`), so that a new cohort adds its own file and no genotype of an old one is read again.
"""
