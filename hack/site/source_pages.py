"""A link to a file that is no page leads to a page that shows it: manifests and tests are read, not saved.

Where a page stands in the site is appended to it while it is read: the pages themselves stay plain Markdown.
"""

import html
import pathlib
import re
from typing import Any, ClassVar

import furo
from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

import site_navigation

FOLDER = "files"

#: The targets of links without a heading.
LINK = re.compile(r"\]\(([^)\s#:]+)\)")
SHEETS = ("pygments.css", "styles/furo.css", "site.css")
#: Files that are short, and read by users; colours in all the tests would take longer than all pages.
COLOURED = frozenset({".toml", ".yaml"})
SHOWN_OF_FOLDERS = ("README.md", "kustomization.yaml", "slurm.conf")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_post_transform(ShownFiles)
    app.connect("source-read", _placed)
    app.connect("html-page-context", _listed)
    app.connect("build-finished", _written)
    # The theme makes its list of pages anew for each page, from the trees of all: a minute for what takes no time.
    furo._compute_navigation_tree = lambda _: ""  # noqa: SLF001 - there is no option
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _placed(app: Sphinx, page: str, source: list[str]) -> None:
    project = pathlib.Path(app.srcdir)
    folder = (project / page).parent
    text = LINK.sub(lambda link: f"]({_file(folder, link[1])})", source[0])
    source[0] = "\n\n".join([text, *site_navigation.trees(project, page)])


def _file(folder: pathlib.Path, target: str) -> str:
    """What a code host shows of a folder: its page, or else what lists the others of its files."""
    if not (folder / target).is_dir():
        return target
    inside = (f"{target.rstrip('/')}/{name}" for name in SHOWN_OF_FOLDERS)
    return next((file for file in inside if (folder / file).is_file()), target)


def _listed(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """The list of pages for the side, in the theme's own classes; folders are open where the page is in them."""
    project, titles, to = pathlib.Path(app.srcdir), app.env.titles, context["pathto"]

    def item(one: str, level: int) -> str:
        inside = site_navigation.below(project, one) if one in site_navigation.BELOW else ()
        opened = page == one or page in inside
        mark = f"toctree-l{level}{' current' if opened else ''}{' current-page' if page == one else ''}"
        more = "".join(item(child, level + 1) for child in inside) if opened else ""
        title = html.escape(titles[one].astext() if one in titles else one)
        return (
            f'<li class="{mark}"><a class="reference internal" href="{to(one)}">{title}</a>'
            f"{f'<ul>{more}</ul>' if more else ''}</li>"
        )

    context["pages_by_role"] = "".join(
        f'<p class="caption" role="heading"><span class="caption-text">{html.escape(part)}</span></p>'
        f"<ul>{''.join(item(one, 1) for one in pages)}</ul>"
        for part, pages in site_navigation.parts(project).items()
    )


class ShownFiles(SphinxPostTransform):
    """Replaces downloads by links to the pages of the files."""

    default_priority = 5
    formats: ClassVar[tuple[str, ...]] = ("html",)

    def run(self, **_: Any) -> None:
        """On one page."""
        for link in list(self.document.findall(addnodes.download_reference)):
            file = (pathlib.Path(self.env.doc2path(self.env.docname)).parent / link["reftarget"]).resolve()
            name = file.relative_to(self.env.srcdir).as_posix()
            _shown(self.env).add(name)
            way = self.app.builder.get_relative_uri(self.env.docname, f"{FOLDER}/{name}")
            link.replace_self(nodes.reference("", "", *link.children, refuri=way, internal=True))


def _shown(env: Any) -> set[str]:
    if not hasattr(env, "shown_files"):
        env.shown_files = set()
    shown: set[str] = env.shown_files
    return shown


def _written(app: Sphinx, problem: Exception | None) -> None:
    """The pages of the files: without the list of all pages, which takes longer than everything else of them."""
    if problem is not None:
        return
    for name in sorted(_shown(app.env)):
        page = pathlib.Path(app.outdir) / FOLDER / f"{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(_page(name, _body(pathlib.Path(app.srcdir) / name)), encoding="utf-8")


def _page(name: str, body: str) -> str:
    """Styled as the others; the theme that was chosen there counts here, too."""
    root = "../" * (name.count("/") + 1)
    sheets = "".join(f'<link rel="stylesheet" href="{root}_static/{sheet}">' for sheet in SHEETS)
    heading = (
        f'<p><a href="{root}{site_navigation.ROOT}.html">slurm-bridge</a></p><h1><code>{html.escape(name)}</code></h1>'
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{html.escape(name)}</title>{sheets}</head>
<body><script>document.body.dataset.theme = localStorage.getItem("theme") || "auto"</script>
<main class="shown-file">{heading}{body}</main></body></html>
"""


def _body(path: pathlib.Path) -> str:
    if path.is_dir():
        items = sorted(one.name for one in path.iterdir() if not one.name.startswith((".", "_")))
        return f"<ul>{''.join(f'<li><code>{html.escape(one)}</code></li>' for one in items)}</ul>"
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix not in COLOURED:
        return f'<div class="highlight"><pre>{html.escape(text)}</pre></div>'
    return str(highlight(text, get_lexer_for_filename(path.name), HtmlFormatter()))
