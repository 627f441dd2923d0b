"""Benchmarks: each figure against its baseline in the same run. `./dev bench` is the way in.

figures  ── what a measurement comes to: medians, ratios, verdicts; pure
rounds   ── contestants in turn, so that all meet the same machine
report   ── the table and the JSON
host     ── fresh file systems, processor time and memory of processes
image    ── the images: made here, the same every time
registry, docker, podman, bare, node ── who is measured, and against whom
measures/ ── one module per figure
"""
