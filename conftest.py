"""What pytest leaves alone: doctests of modules that need a package which is not there."""

from importlib.util import find_spec

MODULES = {
    "torch": ("kernels/cuda/*.py", "rows/precision.py", "rows/tensors.py", "rows/torch.py"),
    "triton": ("kernels/cuda/batched.py",),  # comes with torch for GPUs
}

collect_ignore_glob = [
    f"src/perpend/{module}"
    for package, modules in MODULES.items()
    if not find_spec(package)
    for module in modules
]
