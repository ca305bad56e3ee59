# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sphinx's configuration for site.py, and the links that no page writes: from a name to what declares it, from a
header or an example to its page, from a cited Note [Title] to the note."""

import re

from breathe.renderer import sphinxrenderer
from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

extensions = ["myst_parser", "breathe"]
project = html_title = "cuguest"
html_theme = "furo"
html_copy_source = html_show_copyright = html_show_sphinx = False
html_css_files = ["site.css"]
html_static_path = ["site.css"]
pygments_style, pygments_dark_style = "friendly", "native"
primary_domain = highlight_language = "cpp"
smartquotes = False
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # code with parts left out
breathe_show_include = False
breathe_default_project = "cuguest"
breathe_domain_by_extension = {"h": "cpp"}
breathe_domain_by_file_pattern = {"*/c.h": "c", "*/sim_c.h": "c"}

# As in running text: of two words or a member, or called. Most others are words of English as well.
IN_TEXT = re.compile(r"Note\s\[[^\]]+\]|\b(?:(?:cuguest|cudasim|runtime|testing)/)?\w+\.h\b|\bdocs/\w+\.md\b|"
                     r"\b(?:\w+::)+\w+(?:\(\))?|\b[A-Z][a-z0-9]+[A-Z]\w*(?:\(\))?|\b\w+\(\)|\bcuguest_\w+\b")
NOT_IN = (nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.rubric, addnodes.desc_signature,
          addnodes.pending_xref)


def visit_namespace(renderer, node):
    """A header's page shows what its namespaces have in it, without them."""
    data = renderer.compound_parser.parse(node.refid)
    context = renderer.context.create_child_context(data)
    with sphinxrenderer.WithContext(renderer, context.create_child_context(data.compounddef)):
        return renderer.render(data, context)


def read(app, document):
    """Comments are blocks, which Breathe puts into paragraphs. Notes are where their titles are."""
    for paragraph in list(document.findall(nodes.paragraph)):
        if any(isinstance(child, (nodes.paragraph, nodes.field_list, nodes.literal_block, nodes.rubric,
                                  nodes.bullet_list)) for child in paragraph.children):
            paragraph.replace_self(paragraph.children)
    page = app.env.docname
    for rubric in document.findall(nodes.rubric):
        title = re.fullmatch(r"Note \[(.*)\]", rubric.astext())
        if title:
            rubric["ids"] = [nodes.make_id(rubric.astext())]
            app.env.site_notes[title[1]] = (page, rubric["ids"][0])
    if page == "notes":
        for section in document.findall(nodes.section):
            app.env.site_notes[section[0].astext()] = (page, section["ids"][0])


def places(env):
    """Of each name, header and example: the page, and where on it."""
    if not hasattr(env, "site_places"):
        found = {}
        for domain in ("cpp", "c"):
            for name, _, kind, page, anchor, _ in env.domains[domain].get_objects():
                if kind not in ("functionParam", "templateParam", "templateTypeParam"):
                    found.setdefault(re.sub(r"^cuguest::", "", name), (page, anchor))
        for page in env.found_docs:
            name = re.sub(r"^(reference|sources)/", "", page)
            if page.startswith("reference/"):
                found[f"{name}.h"] = found[f"{name.removeprefix('cuguest/')}.h"] = (page, "")
            elif "/" not in page:
                found[f"docs/{page}.md"] = (page, "")
            elif page.startswith("sources/") and re.search(r"\.cc?$", name):
                parts = re.sub(r"(/host)?\.cc?$", "", name).split("/")
                found[parts[-1]] = (page, "")
        env.site_places = found
    return env.site_places


def part_titles(app, document, page):
    """A file's name as a title has places where a narrow screen may go on with the next line."""
    for title in document.findall(nodes.title):
        if re.fullmatch(r"[\w./]+\.\w+", title.astext()):
            parts = [part for part in re.split(r"(?<=[/_])", title.astext()) if part]
            title[:] = [child for part in parts for child in (nodes.Text(part), nodes.raw("", "<wbr>", format="html"))][:-1]


def link(app, document, page):
    def place(text, near=None):
        note = re.fullmatch(r"Note\s\[([^\]]+)\]", text)
        if note:
            title = " ".join(note[1].split())
            if title not in app.env.site_notes and title != "Title":
                logging.getLogger(__name__).warning("there is no Note [%s]", title, location=near)
            return app.env.site_notes.get(title)
        name = re.sub(r"^cuguest::|<.*>$|\(\)$", "", text)
        return places(app.env).get(name)

    def reference(target, node):
        uri = app.builder.get_relative_uri(page, target[0]) + (f"#{target[1]}" if target[1] else "")
        return nodes.reference("", "", node, internal=True, refuri=uri)

    for text in list(document.findall(nodes.Text)):
        above = text.parent
        while above is not None and not isinstance(above, NOT_IN):
            above = above.parent
        if above is not None:
            if isinstance(above, nodes.literal) and not isinstance(above.parent, (nodes.reference, nodes.title)) \
                    and re.match(r"[A-Z]\w*$|\w*(::|_|\(\)$|\.h$)|\w+$", text.astext()):
                target = place(text.astext())
                if target and target[0] != page and above.parent is not None:
                    above.replace_self(reference(target, above.deepcopy()))
            continue
        parts, end = [], 0
        for match in IN_TEXT.finditer(text.astext()):
            is_note = match[0].startswith("Note")
            target = place(match[0], text.parent) if is_note or page.startswith("reference/") else None
            if target and (is_note or target[0] != page):
                parts += [nodes.Text(text.astext()[end:match.start()]), reference(target, nodes.Text(match[0]))]
                end = match.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text.astext()[end:])])


def setup(app):
    sphinxrenderer.SphinxRenderer.visit_namespace = visit_namespace
    app.connect("builder-inited", lambda app: setattr(app.env, "site_notes", {}))
    app.connect("doctree-read", read)
    app.connect("doctree-resolved", part_titles)
    app.connect("doctree-resolved", link)
