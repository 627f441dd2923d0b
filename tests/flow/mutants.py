"""Faults to plant, one at a time, where a wrong decision would hurt most. `./dev mutants` plants them.

Hand-picked: that all of them are caught says that the tests bite there, not everywhere.
"""

from typing import NamedTuple

from tests.flow.mutants_of_lives import OF_LIVES
from tests.flow.mutants_of_selection import OF_SELECTION
from tests.flow.mutants_of_the_node import OF_THE_NODE


class Mutant(NamedTuple):
    """In the file under `src/sandbay`, `old` (which stands there once) becomes `new`."""

    file: str
    what: str
    old: str
    new: str


FREEZE, PLACE = "flow/freeze.py", "flow/place.py"
PROVE = "flow/prove.py"
WANT, PREPARE, RUN = "flow/want.py", "flow/prepare.py", "flow/run.py"
READINESS, RELEASE = "domain/readiness.py", "domain/release.py"
REQUIREMENT = "domain/requirement.py"

_OF_FREEZE = [
    ("the commit is lost", "source_commit=release.source_commit", "source_commit=None"),
    ("the index stands in for the manifest", "digest=variant.digest,\n", "digest=variant.index_digest,\n"),
    ("the first variant is frozen", "dict(variant.artifacts)", "dict(release.variants[0].artifacts)"),
    ("artifacts are shared, not copied", "dict(variant.artifacts)", "variant.artifacts"),
    ("the reference is replaced by the name", "reference=reference", "reference=image.name"),
    ("the trail is dropped", "trail=trail", "trail=()"),
    ("a Template's variable wins over the request's", "**asked.env},\n        secret", "**said.env},\n        secret"),
    ("a Template's secret stands beside the request's variable", "_but(said.secret_env, asked.env)", "said.secret_env"),
    ("a Template's variable stands beside the request's secret", "_but(said.env, asked.secret_env)", "said.env"),
    ("a request's secret is lost", "**asked.secret_env}", "}"),
    ("a Template's file wins over the request's", "(*said.files, *asked.files)", "(*asked.files, *said.files)"),
    ("a Template's network wins over the request's", "asked.network or said.network", "said.network or asked.network"),
    ("packages open the network for good", "        network=network,", "        network=Network.ENABLED,"),
    ("packages are installed without a network", "Network.ENABLED if said.packages else network", "network"),
    ("tools are shared, not copied", "tools=dict(tools)", "tools=tools"),
    ("tools are not frozen", "tools=dict(tools)", "tools={}"),
]

_OF_PLACE = [
    ("load does not count", "(v.active, _shuffled(session, v.node.id))", "_shuffled(session, v.node.id)"),
    ("the fullest wins", "(v.active, _shuffled", "(-v.active, _shuffled"),
    ("every Session prefers the same node", 'f"{session} {node}".encode()', "node.encode()"),
    (
        "ties depend on the process",
        'hashlib.sha256(f"{session} {node}".encode()).digest()',
        "str(hash(session + node)).encode()",
    ),
    ("pools may be read once", "    pools = tuple(pools)\n", ""),
    ("any provider will do", "not in frozen.providers or", "not in frozen.providers and"),
    ("any platform will do", " or pool.platform != frozen.platform:", ":"),
    ("small sandboxes are taken", "if not pool.size.holds(resources):", "if False:"),
    ("paused pools take Sessions", "if pool.admission is PoolAdmission.PAUSED else None", "if False else None"),
    ("nodes that are away are taken", "if not view.online:", "if not view.online and view.active:"),
    ("cold nodes take work", "if not view.node.warm:", "if not view.node.warm and view.active:"),
    (
        "whatever a node holds will do",
        "is not ReadinessState.READY:",
        "in (ReadinessState.ABSENT, ReadinessState.FAILED):",
    ),
    (
        "what is being evicted will do",
        "is not ReadinessState.READY:",
        "not in (ReadinessState.READY, ReadinessState.EVICTING):",
    ),
    ("one too many", "view.active >= view.node.slots", "view.active > view.node.slots"),
    ("any node of any pool", "v for v in views if v.node.serves(pool)", "v for v in views"),
    ("an unheard node is taken for hopeless", "if able or total.get(FellOut.OFFLINE) else", "if able else"),
    ("one failure for good is the end", "if able or total", "if len(able) == len(eligible) or total"),
    ("a failure is for good", " and readiness.retry_at is None", ""),
    ("no failure is for good", "return _failed(readiness) and", "return False and"),
    (
        "waiting is told before full",
        "    if total.get(FellOut.FULL):\n",
        "    if total.get(FellOut.FULL) and not able:\n",
    ),
    ("an empty pool is unsupported", " or FellOut.NO_NODES in total:", ":"),
    (
        "wishes go to nodes of paused pools",
        "view.node.serves(pool) and _pool_fell_out(frozen, resources, pool) is None for pool",
        "view.node.serves(pool) for pool",
    ),
    ("wishes go to what failed", "key=lambda v: _failed(v.readiness))", "key=lambda v: not _failed(v.readiness))"),
    ("progress of what is gone counts", "for v in eligible if v.readiness.state in _UNDER_WAY]", "for v in eligible]"),
    ("only the last of a kind is counted", "tally[why] = tally.get(why, 0) + 1", "tally[why] = 1"),
]

_OF_WANT = [
    ("the weakest reason counts", "min(need.why, strongest", "max(need.why, strongest"),
    ("a wish is everywhere", "need.node is None or need.node == node", "True"),
    ("a requirement is nowhere", "need.node is None or need.node == node", "need.node == node"),
    ("labels do not count", "any(node.serves(p) and p.platform", "any(node.provider == p.provider and p.platform"),
    ("platforms do not count", " and p.platform == platform and", " and"),
    ("providers do not count", " and p.provider in providers for", " for"),
    ("wishes get the first slots", "(item[1], item[0])", "(-item[1], item[0])"),
]

_OF_PREPARE = [
    ("slots are no limit", "queued[: max(free, 0)]", "queued"),
    ("too few slots are many", "queued[: max(free, 0)]", "queued[:free]"),
    ("verifying takes no slot", "{ReadinessState.PULLING, ReadinessState.VERIFYING}", "{ReadinessState.PULLING}"),
    (
        "the weakest reason starts first",
        "queued = [key for key in reasons if",
        "queued = [key for key in reversed(reasons) if",
    ),
    ("a failure is tried again at once", "ReadinessEvent.RETRY if _due(it, now) else None", "ReadinessEvent.RETRY"),
    (
        "a failure for good is tried again",
        "it.retry_at is not None and it.retry_at <= now",
        "it.retry_at is None or it.retry_at <= now",
    ),
    ("a moment too late", "it.retry_at <= now", "it.retry_at < now"),
    ("what is unwanted is kept", "if key not in reasons and _lingers(it)]", "if False]"),
    ("what is wanted is given up", "if key not in reasons and _lingers(it)]", "if _lingers(it)]"),
    ("an unwanted failure stays for ever", " or it.state is ReadinessState.FAILED\n", "\n"),
    ("what is wanted is never asked for", "return None if it.wanted else ReadinessEvent.WANTED", "return None"),
]

_OF_RUN = [
    (
        "unknown is absent",
        "        return Move.LOOK_AGAIN\n",
        "        seen = Presence.ABSENT\n",
    ),
    ("a setup that was cut short goes on", "if not prepared and", "if prepared and"),
    (
        "a setup that is done is done again",
        "return _MOVES[said, seen]",
        "return _MOVES[said, seen] if prepared else Move.START_OVER",
    ),
    (
        "a running Session is started over",
        "frozenset({AllocationState.RESERVED,",
        "frozenset({AllocationState.RUNNING, AllocationState.RESERVED,",
    ),
    (
        "a lost workspace is replaced by an empty one",
        "(_S.RUNNING, _P.ABSENT): Move.REPORT_LOST",
        "(_S.RUNNING, _P.ABSENT): Move.CREATE",
    ),
    (
        "what ended is started again",
        "(_S.RUNNING, _P.EXITED): Move.REPORT_LOST",
        "(_S.RUNNING, _P.EXITED): Move.CREATE",
    ),
    ("a restart destroys what runs", "(_S.RUNNING, _P.RUNNING): Move.ADOPT", "(_S.RUNNING, _P.RUNNING): Move.DESTROY"),
    ("a retry starts a second one", "(_S.STARTING, _P.RUNNING): Move.ADOPT", "(_S.STARTING, _P.RUNNING): Move.CREATE"),
    ("what nobody owns runs on", "(None, _P.RUNNING): Move.DESTROY", "(None, _P.RUNNING): Move.ADOPT"),
    ("what is closed runs on", "(_S.CLOSED, _P.RUNNING): Move.DESTROY", "(_S.CLOSED, _P.RUNNING): Move.NOTHING"),
    ("an end is never told", "(_S.STOPPING, _P.ABSENT): Move.REPORT_CLOSED", "(_S.STOPPING, _P.ABSENT): Move.NOTHING"),
]

_OF_READINESS = [
    ("reports from the future count", "attempt != now.attempt", "attempt < now.attempt"),
    ("a finished download is ready", "(_S.PULLING, _E.FETCHED): _S.VERIFYING", "(_S.PULLING, _E.FETCHED): _S.READY"),
    ("what nobody wants is gone at once", "(_S.READY, _E.UNWANTED): _S.READY", "(_S.READY, _E.UNWANTED): _S.EVICTING"),
    ("lost bytes stay ready", "(_S.READY, _E.LOST): _S.FAILED", "(_S.READY, _E.LOST): _S.READY"),
    ("what is wanted again is dropped", "if event is _E.DROP and now.wanted:", "if False:"),
    ("what nobody wants is tried again", "if event is _E.RETRY and not now.wanted:", "if False:"),
    ("wanted while evicting is forgotten", "if event is _E.REMOVED and now.wanted:", "if False:"),
    ("a new prepare is the old attempt", "attempt=now.attempt + begins", "attempt=now.attempt"),
    ("a failure has no reason", "fault=fault if failed else None", "fault=None"),
    ("a fault outlives its failure", "fault=fault if failed else None", "fault=fault or now.fault"),
    ("a grant for an old attempt counts", "_E.REMOVED, _E.LOST, _E.DROP}", "_E.REMOVED, _E.LOST}"),
    ("anything may skip an attempt", " and reported.state in (_S.QUEUED, _S.PULLING)", ""),
    ("bad bytes are fetched for ever", "if reason.about.group is Group.CONTENT and", "if False and"),
    ("lost bytes are never fetched again", " and reason is not Reason.CONTENT_LOST:", ":"),
    ("every wait is the shortest", "_RETRY_AFTER[min(max(attempt, 1), len(_RETRY_AFTER)) - 1]", "_RETRY_AFTER[0]"),
]

_OF_RELEASE = [
    ("an index digest names nothing", "digest in (self.digest, self.index_digest)", "digest == self.digest"),
    ("a retired release takes Sessions", '    ReleaseState.RETIRED: (Reason.RELEASE_RETIRED, "is retired"),\n', ""),
    ("a rejected release is only pending", "(Reason.RELEASE_REJECTED, ", "(Reason.RELEASE_PENDING, "),
]

_OF_PROVE = [
    ("a start proves tools", " and not contract.tools\n", "\n"),
    ("a violated contract is kept", "if report.kept else Verdict", "if report.boots else Verdict"),
    ("a release in use is rejected", "status.state is not ReleaseState.PENDING or not", "not"),
    (
        "what promises nothing waits for a report",
        "ReleaseState.PENDING or not contract.tools:",
        "ReleaseState.PENDING:",
    ),
    ("bytes at fault are tried again", " and fault.reason is Reason.CONTRACT_VIOLATED", ""),
    ("a rejection has no reason", "ReleaseState.REJECTED, violation_of(report))", "ReleaseState.REJECTED)"),
]

_OF_REQUIREMENT = [
    ("any version will do", "version is not None and requirement.met_by(version)", "version is not None"),
    ("what is missing is enough", "version is not None and requirement", "version is None or requirement"),
    ("what nobody has read is taken for absent", "if tools else UNKNOWN", "if tools or not tools else UNKNOWN"),
    ("no version that is one is any version", "            return False\n", "            return True\n"),
]

_BY_FILE = {
    **OF_SELECTION,
    FREEZE: _OF_FREEZE,
    PLACE: _OF_PLACE,
    PROVE: _OF_PROVE,
    WANT: _OF_WANT,
    PREPARE: _OF_PREPARE,
    RUN: _OF_RUN,
    **OF_THE_NODE,
    **OF_LIVES,
    READINESS: _OF_READINESS,
    RELEASE: _OF_RELEASE,
    REQUIREMENT: _OF_REQUIREMENT,
}
MUTANTS = tuple(Mutant(file, *fault) for file, faults in _BY_FILE.items() for fault in faults)
