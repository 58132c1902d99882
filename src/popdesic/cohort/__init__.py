"""From files to planes: ingest, quality control, the panel, imputation, encoding."""
