"""What a workload comes to as a placeholder: its pods, annotations and the configured defaults become a `JobRequest`.

Belongs here: the rules of translation as pure functions and tables, the form in which Slurm is asked for several pods,
what each value came from, and the words that tell a user which value is wrong. Does not belong here: settings as they
are read from files, anything that asks a server, and which nodes a job may use; the hooks decide that afterwards.
"""
