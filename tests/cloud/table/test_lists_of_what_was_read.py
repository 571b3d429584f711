"""The lists of what a table has read promise to know each file that is there, and no more than there were lately."""

from __future__ import annotations

from pathlib import Path

from sluicegate_cloud.sources import list_sources
from sluicegate_cloud.table import sources as seen
from sluicegate_cloud.table.versions import Store


def test_what_is_gone_leaves_the_lists_and_what_another_place_has_does_not(tmp_path: Path) -> None:
    """A folder whose files are removed once they are read, and one that is merged once."""
    store, lists = Store(tmp_path / "table"), tuple[str, ...]()
    for name, at in [("other", 0), *(("some", at) for at in range(40))]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        (folder / f"{at}.json").write_text(str(at))
        found = list_sources([folder])
        files = seen.listed(found.files)
        new = seen.unseen(store, lists, files)
        assert new.num_rows == 1
        lists = seen.noted(store, lists, new, files, [str(folder)])
        assert seen.unseen(store, lists, files).num_rows == 0
    known = [path for name in lists for path in store.read(name)["path"].to_pylist()]
    assert len(known) < 2 * seen.MOST_LISTS
    assert str(tmp_path / "other" / "0.json") in known
