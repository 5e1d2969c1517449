"""How the documentation is built: ``make docs`` runs Sphinx with this file.

The build needs no network, no real data and no torch. Whatever the pages show is computed by it
(the gallery), or run by ``tests/test_docs.py`` (the code in the pages).
"""

import sys
import warnings
from pathlib import Path

from sklearn.base import BaseEstimator, OutlierMixin, TransformerMixin

import perpend
from perpend import DPCP
from perpend.estimator import SubspaceEstimator

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "perpend"
author = "The perpend developers"
project_copyright = author
version = release = perpend.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without network, for readers too
    "sphinx.ext.viewcode",
    "myst_parser",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "method_cards",
    "short_cells",
    "house_docstrings",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "_templates",
    "reproduction/**/page.md",  # parts of reproduction.md
    "gallery/*.ipynb",
    "gallery/*.md5",
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
root_doc = "index"
default_role = "code"  # `name` in docstrings is code, and no guess at a link

# -- Markdown: the guide, and pages that are made by experiments and benchmarks --------------------

myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# -- docstrings ------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False  # what is public is what `__all__` says
autosummary_imported_members = True
autosummary_context = {
    # What comes from elsewhere is documented there.
    "foreign": {
        name
        for base in (BaseEstimator, OutlierMixin, TransformerMixin, tuple)
        for name in dir(base)
        if name not in vars(SubspaceEstimator)
    }
    | {"__init__", "get_feature_names_out"}
    | {name for name in dir(DPCP) if name.endswith("_request")}
}
nitpick_ignore = [("py:obj", "normals_covariance_")]  # a property, explained with the attributes
autodoc_typehints = "none"  # the sections of the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_show_inherited_class_members = False
# Checked at every build; a public name whose docstring lacks these fails it.
numpydoc_validation_checks = {"GL08", "SS01"}
numpydoc_validation_exclude = {r"\._", r"\.set_.*_request$"}

# -- gallery ---------------------------------------------------------------------------------------


def _without_path(message, category, *_args, **_options):
    """Format a warning of an example without the path of the machine that built the page."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = _without_path

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,  # times of a build say nothing to a reader
    "show_memory": False,
    "show_signature": False,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("perpend",),
    "plot_gallery": "True",
    "image_scrapers": ("matplotlib",),
    "thumbnail_size": (480, 340),
}

# -- how it looks ----------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "perpend"
html_static_path = ["_static"]
html_css_files = ["perpend.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "perpend"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"start": [], "citing": [], "changelog": [], "maths": []}
