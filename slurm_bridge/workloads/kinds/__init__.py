"""One file for each kind of workload, with its row: a KindSpec.

Belongs here: everything that is special about one kind. Does not belong here: another kind; kinds do not know each
other, and `workloads.kind_table` says which of them comes first.
"""
