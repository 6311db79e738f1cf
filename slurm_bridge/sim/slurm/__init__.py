"""The pocket slurmrestd and slurmctld: what Slurm 26.05 does as far as the bridge can notice, wrong answers included.

    server ── api ─┬─ submission · updates · node_updates · queries   one verb of slurmrestd each
                   ├─ fields · tres · answers · shapes                JSON to records and back
                   └─ pocket ── world ── schedule ── select           slurmctld: pure state, moved by ticks

Belongs here: rules that were observed on a real server. Does not belong here: HTTP itself (sim.http), injected faults
(sim.faults), and anything that only accounting (slurmdbd) would do.
"""
