"""The parts of docs/benchmarks.md: one file for each group of sections."""
