"""What RabbitMQ makes of a topic comes back as it was sent, or is left as it came where nobody can tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.payloads.sparkplug.topics import dotted

NAME = st.from_regex(r"[a-z0-9_-]{0,3}(\.[a-z0-9_-]{0,3}){0,3}", fullmatch=True).filter(bool)
NODE, DEVICE = ["NBIRTH", "NDATA", "NDEATH", "NCMD"], ["DBIRTH", "DDATA", "DDEATH", "DCMD"]


@given(group=NAME, kind=st.sampled_from(NODE), node=NAME)
def test_a_nodes_topic_comes_back(group: str, kind: str, node: str) -> None:
    """With any dots in group and node."""
    topic = f"spBv1.0/{group}/{kind}/{node}"
    assert dotted(topic) == topic
    assert dotted(topic.replace(".", "/")) == topic


@given(group=NAME, kind=st.sampled_from(DEVICE), node=NAME, device=NAME)
def test_a_devices_topic_comes_back_where_it_is_certain(group: str, kind: str, node: str, device: str) -> None:
    """With any dots in the group; where node or device has one the levels stay, which no source takes for a topic."""
    topic = f"spBv1.0/{group}/{kind}/{node}/{device}"
    found = dotted(topic.replace(".", "/"))
    assert (found == topic) == ("." not in node + device)
    assert found == topic or len(found.split("/")) > 5


@pytest.mark.parametrize(
    ("came", "said"),
    [
        ("spBv1/0/STATE/host", "spBv1.0/STATE/host"),
        ("spBv1/0/NDATA/NDATA/edge", "spBv1.0/NDATA/NDATA/edge"),  # a group with the name of a kind
        ("spBv1/0/NDATA/edge", "spBv1.0/NDATA/edge"),
        ("spBv1/0", "spBv1.0"),
        ("spBv1/1/a/NDATA/b", "spBv1/1/a/NDATA/b"),
        ("plant/0/a", "plant/0/a"),
    ],
)
def test_what_is_not_certain_stays(came: str, said: str) -> None:
    """Only the first level is put together."""
    assert dotted(came) == said
