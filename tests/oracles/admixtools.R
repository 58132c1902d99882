# f3 of all triples and f4 of all quartets by ADMIXTOOLS 2, from blocks of f2.
#
#   Rscript tests/oracles/admixtools.R F2_BLOCKS.rds F3.tsv F4.tsv [SOURCE]
#
# Uses the package admixtools, or, where it is not installed, its own functions from its source tree.
arguments <- commandArgs(trailingOnly = TRUE)
if (!requireNamespace("admixtools", quietly = TRUE)) {
  if (length(arguments) < 4) quit(status = 3)
  for (name in c("magrittr", "dplyr", "tidyr", "readr", "purrr", "tibble", "stringr", "rlang")) {
    suppressPackageStartupMessages(library(name, character.only = TRUE))
  }
  suppressWarnings(Rcpp::sourceCpp(file.path(arguments[4], "src", "cpp_resampling.cpp")))
  for (name in c("utility", "resampling", "io", "fstats", "qpdstat")) {
    source(file.path(arguments[4], "R", paste0(name, ".R")))
  }
} else {
  suppressPackageStartupMessages(library(admixtools))
}
blocks <- readRDS(arguments[1])
f3 <- qp3pop(blocks, unique_only = TRUE)
f4 <- qpdstat(blocks, unique_only = TRUE)
write.table(format(as.data.frame(f3), digits = 17), arguments[2], sep = "\t", quote = FALSE, row.names = FALSE)
write.table(format(as.data.frame(f4), digits = 17), arguments[3], sep = "\t", quote = FALSE, row.names = FALSE)
