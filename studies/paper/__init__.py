"""The numbers on the pages of the paper's experiments, one file each."""
