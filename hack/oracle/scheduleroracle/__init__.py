"""Compares the hook kube-scheduler with kube-scheduler itself: random clusters and pods on an API server of its own.

servers     etcd, the API server and kube-scheduler, for the length of a run
draws       random choices that can be repeated
clusters    random nodes, and what runs on them
storage     random claims, volumes and classes
pods        random pods to be placed
objects     creates and deletes all of it
reference   what kube-scheduler says of a pod
bridge      what the hook says of it
answers     the record of both, and how they differ
"""
