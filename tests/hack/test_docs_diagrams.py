"""The diagrams of docs/: no text is wider than its box, as a browser without the fonts of the author draws it."""

import re

import pytest

import docs_diagrams

#: Widths of a letter of these sizes, bold and plain, of a wide font.
WIDTHS = {15: 8.8, 13: 7.4}


@pytest.mark.parametrize("name", docs_diagrams.files())
def test_texts_fit_into_their_boxes(name: str) -> None:
    """Each text behind a box is in it."""
    text = docs_diagrams.files()[name]
    boxes = re.findall(r'<rect x="\d+" y="\d+" width="(\d+)".*?/>((?:<text.*?</text>)*)', text)
    assert len(boxes) >= 4
    for width, inside in boxes:
        for size, words in re.findall(r'font-size="(\d+)">(.*?)</text>', inside):
            assert len(words) * WIDTHS[int(size)] <= int(width), words


def test_each_has_a_title_for_readers_that_see_no_pictures() -> None:
    """And loads nothing."""
    for text in docs_diagrams.files().values():
        assert "<title>" in text
        assert "href" not in text
