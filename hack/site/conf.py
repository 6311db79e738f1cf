"""Sphinx's configuration of the site: Markdown as code hosts read it, one theme, nothing from elsewhere."""

import pathlib
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "hack" / "site")]

import site_navigation  # noqa: E402 - from beside this file
import slurm_bridge  # noqa: E402 - only its version

project = "slurm-bridge"
copyright = ""  # noqa: A001 - Sphinx asks for this name
release = slurm_bridge.__version__

extensions = ["myst_parser", "sphinx_copybutton", "source_pages"]
root_doc = site_navigation.ROOT
# Few patterns: each is compiled for each page.
include_patterns = [
    *(f"{page}.md" for page in site_navigation.TOP),
    *(f"{folder}/**" for folder in site_navigation.FOLDERS),
]
# Folders without pages are not walked through.
exclude_patterns = [".*", "build", "slurm_bridge", "tests", "hack/site/**", "**/__pycache__"]
# Headings are named as on code hosts, down to the deepest.
myst_heading_anchors = 6
# An example of Markdown or YAML in a page is no directive of ours.
myst_enable_extensions: list[str] = []
# Blocks without a language are shown as they are.
highlight_language = "none"
nitpicky = True
# Generated lists of cases have headings of the third level below the first.
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "slurm-bridge"
html_static_path = ["static"]
html_css_files = ["site.css"]
# The list of versions is beside the folders of all versions.
html_js_files = ["versions-menu.js"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
# Excerpts of results are read over HTTP, which a browser refuses for files.
html_show_search_summary = False
html_theme_options = {
    "source_view_link": "",
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#7cb7ff", "color-brand-content": "#7cb7ff"},
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
templates_path = ["templates"]
copybutton_exclude = ".linenos, .gp, .go"
