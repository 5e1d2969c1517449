"""What pytest leaves alone: doctests of modules that need a package which is not there."""

from importlib.util import find_spec

NEED_TORCH = ("kernels/cuda/*.py", "rows/precision.py", "rows/tensors.py", "rows/torch.py")

collect_ignore_glob = [] if find_spec("torch") else [f"src/perpend/{name}" for name in NEED_TORCH]
