"""What every room stands on: errors, files, logs, threads, tables, text, places, schemas."""
