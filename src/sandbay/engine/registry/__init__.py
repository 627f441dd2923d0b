"""OCI registries: the distribution protocol, read with distrust.

refusals ── what an answer that is no success means
trust ───── where a request may go, and in the clear only where that is allowed
pace ────── when to try again, and when to wait for a registry
auth ────── challenges, tokens, and who may see which credentials
client ──── manifests and blobs of one repository
push ────── the same the other way
"""
