"""Writing YAML: whatever goes out comes back the same, also through a YAML 1.1 reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from engine.wire import RawNumber
from policies.manifests.render import render_documents
from policies.manifests.sources import parse_documents

TRICKY = "no on y Y n N off NO yes true null ~ 0o17 017 08 1e3 .5 1_000 0x1f 1:30".split()
TRICKY += "= << - ? : # & *".split()
TEXTS = st.one_of(
    st.sampled_from(TRICKY), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.none(), st.booleans()),
    lambda v: st.one_of(st.lists(v, max_size=3), st.dictionaries(TEXTS, v, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, object]) -> None:
    (document,) = parse_documents(render_documents([value]), "f")
    assert document.value == value


@pytest.mark.parametrize("text", TRICKY)
def test_tricky_string_survives_a_yaml_1_1_reader(text: str) -> None:
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)
    assert reader.load(render_documents([{text: text}])) == {text: text}


def test_nested_lists_and_maps_have_their_usual_shape() -> None:
    value = {"spec": {"limits": [{"max": {"cpu": "500m"}, "type": "Pod"}], "empty": {}, "m": [[]]}}
    assert render_documents([value]) == (
        'spec:\n  limits:\n  - max:\n      cpu: "500m"\n    type: Pod\n  empty: {}\n  m:\n  - []\n'
    )


def test_numbers_and_several_documents() -> None:
    assert render_documents([{"a": RawNumber("1")}, {"b": 2}]) == "a: 1\n---\nb: 2\n"
