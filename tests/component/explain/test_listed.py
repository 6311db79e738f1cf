from slurm_bridge.explain.cluster_view import ListedObjects
from slurm_bridge.model.meta import Object, ObjectMeta


def test_a_list_is_a_view_that_never_changes() -> None:
    """Hooks find its objects by name, or all of them, at one version."""
    one = Object(metadata=ObjectMeta(namespace="ns", name="a", uid="u"))
    view = ListedObjects([one])
    assert (view.get("ns", "a"), view.get("ns", "b")) == (one, None)
    assert (tuple(view.all()), len(view)) == ((one,), 1)
    assert view.version == ListedObjects([]).version
