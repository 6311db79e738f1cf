"""What may be wrong with a configuration of queues, and how it is told."""

import dataclasses
from collections.abc import Iterable, Mapping

from slurm_bridge import errors

#: Every code that a problem can have, with the rule that is broken.
CODES: Mapping[str, str] = {
    # the form of the document
    "wrong_type": "a field has a value of its kind",
    "unknown_field": "a field is known",
    "seed_spelling": "capacity, max-capacity, mapping-policies, configs, acls and childrens have other names",
    "property_value": "a property of a queue has one of its values",
    "invalid_quantity": "an amount is digits with a suffix",
    # partitions and queues
    "partitions_missing": "a configuration has partitions",
    "queues_missing": "a partition has queues",
    "duplicate_partition": "two partitions differ in more than their case",
    "root_resources": "the root has no resources of its own: it has those of the cluster",
    "queue_name": "a queue's name is 1 to 64 letters, digits and _ : # / @ -",
    "duplicate_queue": "two queues below one parent differ in more than their case",
    "acl_fields": "an access control list is users, a space, and groups",
    "unknown_node_sort_policy": "nodes are sorted by fair or binpacking",
    "negative_node_weight": "the weight of a resource is 0 or more",
    # resources and numbers of applications
    "guaranteed_above_max": "a queue is guaranteed no more than its maximum",
    "max_above_parent": "a maximum is no larger than those above it",
    "children_guaranteed_above_parent": "children are guaranteed no more than their parent",
    "children_guaranteed_above_max": "children are guaranteed no more than the maximum above them",
    "maxapplications_above_parent": "a queue allows no more applications than its parent",
    "maxapplications_missing": "below a queue that limits applications every queue does",
    # limits of users and groups
    "limit_without_subject": "a limit has users or groups",
    "limit_empty": "a limit has maxapplications or maxresources",
    "limit_user_name": "a limit names users, or *",
    "limit_group_name": "a limit names groups, or *",
    "limit_duplicate_user": "a user stands once in the limits of a queue",
    "limit_duplicate_group": "a group stands once in the limits of a queue",
    "limit_after_wildcard": "* is the last in the limits of a queue",
    "limit_only_wildcard_group": "before the group * there is a named one",
    "limit_resources_not_positive": "maxresources has no negative amount and at least one above 0",
    "limit_applications_above_queue": "a limit allows no more applications than its queue",
    "limit_resources_above_queue": "a limit allows no more resources than its queue",
    "limit_above_ancestor": "a limit allows no more resources than the one of the same name above it",
    "limit_applications_above_ancestor": "a limit allows no more applications than the one of the same name above it",
    "limit_above_ancestor_wildcard": "a limit allows no more resources than the limit of * above it",
    "limit_applications_above_ancestor_wildcard": "a limit allows no more applications than the limit of * above it",
    "partition_and_root_limits_differ": "the limits of a partition are those of its root",
    # placement rules
    "rule_name": "a placement rule's name is letters, digits and _, and no digit first",
    "rule_filter_type": "a filter allows or denies",
    "rule_filter_list": "a single entry of a filter is a name or a regular expression",
    "rule_qualified_fixed_under_parent": "only the first fixed value of a chain begins with root",
    "rule_queue_missing": "a queue of a fixed rule exists, or the rule creates it",
    "rule_last_queue_is_leaf": "a fixed rule ends at a leaf, it does not go on below one",
    "rule_queue_not_leaf": "a fixed rule that nothing follows ends at a leaf",
    "rule_queue_not_parent": "a fixed rule that another follows ends at a parent",
    # what this program asks beyond YuniKorn
    "queue_place": "a queue's name has one place, the same one in every partition",
    "rule_unknown": "a placement rule is user, fixed, provided or tag",
    "rule_value": "a fixed or tag rule has a value",
    "acl_spaces": "one space stands between users and groups",
    "acl_name": "each name of an access control list can be read, so that none counts for nothing",
    "queue_kind": "a queue in use stays a leaf, or a parent",
    "template_on_leaf": "only a parent has a template for its children",
    # warnings: what YuniKorn ignores is ignored
    "property_unknown": "a property of a queue is known",
    "field_ignored": "YuniKorn reads the field",
    "max_zero": "a maximum has a type of which there may be something",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueueProblem:
    """One rule that a configuration breaks; `field` is the place in the document as it was given.

    One that is a `warning` keeps no configuration from being used: what it is about is ignored.
    """

    code: str
    field: str
    there: str
    allowed: str
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.field or 'the document'}: {self.there}; {self.allowed} [{self.code}]"


def problem(code: str, field: str, there: str, allowed: str) -> QueueProblem:
    """One broken rule, in the order in which it is told."""
    return QueueProblem(code=code, field=field, there=there, allowed=allowed)


class ConfigurationRefused(errors.BadConfiguration):
    """A configuration of queues that cannot be used; it carries all that is wrong with it."""

    def __init__(self, problems: Iterable[QueueProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
