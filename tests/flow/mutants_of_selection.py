"""Faults to plant in how an image is selected: who decides, what a word comes to, where one stands, what moves."""

RESOLVE, LEVELS = "flow/resolve/__init__.py", "flow/resolve/levels.py"
CHAIN, BLAME = "flow/resolve/chain.py", "flow/resolve/blame.py"
LOCATE, SCOPE = "flow/locate.py", "domain/scope.py"
PROMOTE, UPGRADE, CATALOG = "flow/promote.py", "flow/upgrade.py", "domain/catalog.py"

_FOUND = "    by, found = words[taken.place], taken.found\n"
_CHECKS = "    *(_not_retired, _allowed, _granted),\n    *(_supported, _active),\n"
_HELD = "    also = find(wished, ground)\n"

_OF_RESOLVE = [
    (
        "a refusal becomes the default image",
        _FOUND,
        _FOUND
        + "    if isinstance(found, Refusal) and deployment.default_image:\n"
        + "        from sandbay.flow.resolve.chain import follow\n"
        + "        found = follow('@default', ground)\n",
    ),
    (
        "a refused word gives way to the next level's",
        _FOUND,
        _FOUND
        + "    from sandbay.flow.resolve.chain import follow\n"
        + "    for weaker in words:\n"
        + "        if isinstance(found, Refusal) and weaker.reference:\n"
        + "            found = follow(weaker.reference, ground)\n",
    ),
    ("every word counts as chosen", "if place == taken.place:", "if word.reference is not None:"),
    ("what was overruled looks silent", "else Outcome.OVERRULED), None", "else Outcome.SILENT), None"),
    (
        "what was held against a wish looks overruled",
        "return Outcome.CANDIDATE, None",
        "return Outcome.OVERRULED, None",
    ),
    ("a refusal leaves no reason in the trail", "Outcome.REFUSED, checked.reason)", "Outcome.REFUSED, None)"),
    ("the trail does not tell what is enforced", "why, word.enforced)", "why)"),
    ("the strongest level signs, said or not", "DecidedBy(by.level,", "DecidedBy(words[0].level,"),
    ("nobody is warned", "for holds, what in said if holds)", "for holds, what in said if holds and not by)"),
    ("tools are not handed on", "checked.tools, taken.reference", "{}, taken.reference"),
    (
        "the reference is the strongest word's",
        "checked.tools, taken.reference",
        "checked.tools, words[0].reference or ''",
    ),
]

_OF_LEVELS = [
    (
        "the order of levels is fixed in code",
        "ground.policy.precedence.index(word.level)",
        "list(Level).index(word.level)",
    ),
    (
        "the order of the input decides",
        "tuple(sorted(words, key=lambda word: ground",
        "tuple(sorted(words, key=lambda word: 0 and ground",
    ),
    (
        "of scopes the broadest is preferred",
        "for it in reversed(ground.path.subjects)",
        "for it in ground.path.subjects",
    ),
    ("a preference is enforced", "binding.mode is Mode.ENFORCE", "binding.mode is not None"),
    ("what is enforced is a preference", "binding.mode is Mode.ENFORCE", "binding.mode is None"),
    ("the deployment enforces nothing", "if it != DEPLOYMENT or it in ground.standing.bindings", "if it != DEPLOYMENT"),
    (
        "the narrowest enforced word decides",
        "for it in reversed(spoken) if it[1].enforced",
        "for it in spoken if it[1].enforced",
    ),
    (
        "what is preferred beats what is enforced",
        "chosen = enforced or next(iter(spoken), None)",
        "chosen = next(iter(spoken), None) or enforced",
    ),
    ("the broadest preference decides", "next(iter(spoken), None)", "next(reversed(spoken), None)"),
    (
        "a wish passes whatever is enforced",
        "    if enforced and wishes:\n",
        "    if enforced and wishes:\n        enforced = None\n    if enforced and wishes:\n",
    ),
    (
        "what is enforced overrules a wish in silence",
        "    if enforced and wishes:\n",
        "    if enforced and not spoken:\n",
    ),
    ("a preference is a wish", "if it[1].level in EXPLICIT]", "if not it[1].enforced]"),
    ("a Template has no wish", "if it[1].level in EXPLICIT]", "if it[1].level is Level.SESSION]"),
    ("the Template's wish is held, not the request's", "wishes[0], ground)", "wishes[-1], ground)"),
    (
        "a denial refuses Templates, too",
        "if it[1].level is Level.SESSION), None)",
        "if it[1].level in EXPLICIT), None)",
    ),
    (
        "a denial is looked at after what is enforced",
        "    if own and denied:\n",
        "    if own and denied and not any(it[1].enforced for it in spoken):\n",
    ),
    ("only the deployment denies", "is Override.DENY:", "is Override.DENY and subject == DEPLOYMENT:"),
    (
        "any row on overrides denies",
        "ground.standing.overrides.get(subject) is Override.DENY",
        "subject in ground.standing.overrides",
    ),
    (
        "a wish for the image is enough",
        "also.held.release.id == meant.held.release.id",
        "also.entry.image.id == meant.entry.image.id",
    ),
    (
        "the same number of another image passes",
        "also.held.release.id == meant.held.release.id",
        "also.held.release.number == meant.held.release.number",
    ),
    (
        "other bytes of the enforced release pass as its own",
        "if isinstance(found, Candidate) and isinstance(own, Refusal):",
        "if False:",
    ),
    ("a bare name enforces its stable release", "if is_bare_name(reference) and", "if False and"),
    ("a channel leaves its image's releases open", "if is_bare_name(reference) and", "if"),
    (
        "a wish that finds nothing passes",
        "    if isinstance(meant, Refusal):\n",
        "    if isinstance(meant, Refusal) or isinstance(find(wished, ground), Refusal):\n",
    ),
    (
        "the wish's fault hides the binding's",
        _HELD,
        _HELD + "    if isinstance(also, Refusal):\n        return Taken(wish_place, wished, also, place)\n",
    ),
    ("the refusal names no binding", 'None, {"binding": told_binding(binding)})', "None, {})"),
    (
        "the binding is refused, not the wish",
        "    return Taken(wish_place, wished, refusal, place)\n",
        "    return Taken(place, reference, refusal, wish_place)\n",
    ),
]

_OF_CHAIN = [
    (
        "an unknown image is the default image",
        "    found = ground.catalog.image(reference.image)\n",
        "    found = ground.catalog.image(reference.image) or next(iter(ground.catalog.entries), None)\n",
    ),
    ("a retired image takes Sessions", "is ImageState.RETIRED:", "is ImageState.DEPRECATED:"),
    ("support is never looked at where it may wait", "bool(self.deployment.pools) or not", "not"),
    (
        "support is not looked at without pools",
        "bool(self.deployment.pools) or not self.policy.support_may_wait",
        "bool(self.deployment.pools)",
    ),
    ("any provider will do", "== variant.platform and p.provider in", "== variant.platform or p.provider in"),
    (
        "a paused pool supports nothing",
        "[p for p in pools if p.platform",
        '[p for p in pools if p.admission == "open" and p.platform',
    ),
    (
        "another platform's variant stands in",
        "variant_for(ground.platform)",
        "variant_for(ground.platform) or found.held.release.variants[0]",
    ),
    (
        "a release's state is looked at first",
        _CHECKS,
        "    *(_active, _not_retired, _allowed),\n    *(_granted, _supported),\n",
    ),
    (
        "support is looked at before retirement",
        _CHECKS,
        "    *(_supported, _not_retired, _allowed),\n    *(_granted, _active),\n",
    ),
    (
        "lists are looked at before retirement",
        _CHECKS,
        "    *(_allowed, _not_retired, _granted),\n    *(_supported, _active),\n",
    ),
    (
        "grants are looked at before lists",
        _CHECKS,
        "    *(_not_retired, _granted, _allowed),\n    *(_supported, _active),\n",
    ),
    (
        "support is looked at before grants",
        _CHECKS,
        "    *(_not_retired, _allowed, _supported),\n    *(_granted, _active),\n",
    ),
    (
        "state is looked at before support",
        _CHECKS,
        "    *(_not_retired, _allowed, _granted),\n    *(_active, _supported),\n",
    ),
    ("an unknown channel is the newest release", "if not said and entry.releases:", "if entry.releases:"),
    (
        "an unknown channel is stable",
        "entry.channels.get(channel)\n",
        "entry.channels.get(channel) or entry.channels.get(STABLE)\n",
    ),
    ("without stable a name is the oldest release", "entry.releases[max(", "entry.releases[min("),
    (
        "an unknown number is the newest release",
        "entry.releases.get(number)\n",
        "entry.releases.get(number) or entry.releases.get(max(entry.releases, default=0))\n",
    ),
    (
        "a manifest digest selects other bytes",
        "            return variant.has(digest)\n",
        "            return True\n",
    ),
    ("the default's image needs no default", "if ground.deployment.default_image is None:", "if False:"),
    (
        "one list on the path is enough",
        "            continue\n        if subject == DEPLOYMENT",
        "            return None\n        if subject == DEPLOYMENT",
    ),
    ("every list holds the default", "if subject == DEPLOYMENT and image.id ==", "if image.id =="),
    ("no list holds the default", "if subject == DEPLOYMENT and image.id ==", "if False and image.id =="),
    ("an empty list is none", "if listed is None or", "if listed is None or listed == type(listed)() or"),
    (
        "an id is not on a list",
        "listed.admits((image.name, image.id), image.labels)",
        "listed.admits((image.name,), image.labels)",
    ),
    (
        "labels are not looked at",
        "listed.admits((image.name, image.id), image.labels)",
        "listed.admits((image.name, image.id), {})",
    ),
    ("whose list it is is not told", '"allow_list": where})', '"allow_list": {}})'),
    ("nothing is restricted", "if image.tier is Tier.STANDARD or", "if image.tier is not None or"),
    ("every image needs a grant", "if image.tier is Tier.STANDARD or", "if"),
    (
        "a grant for anything is one for all",
        "if any(image.id in ground.standing.grants.get(subject, ())",
        "if any(ground.standing.grants.get(subject, ())",
    ),
    (
        "a grant beside the path counts",
        "for subject in ground.path.subjects):",
        "for subject in ground.standing.grants):",
    ),
    (
        "the base of a build has ceilings",
        "for subject in ground.path.subjects if ground.policy.ceilings else ():",
        "for subject in ground.path.subjects:",
    ),
    ("@default means any image", "return entry.image.id == ground.deployment.default_image", "return True"),
    ("a name by id is no name", "return name in (entry.image.name, entry.image.id)", "return name == entry.image.name"),
    (
        "a release id means no image",
        "return release in (held.release.id for held in entry.releases.values())",
        "return False",
    ),
    ("a said channel is a bare name", "            return not said\n", "            return True\n"),
]

_OF_BLAME = [
    ("the request is blamed for others' words", "_IN_REQUEST.get(by.level), facts)", '"runtime_image_id", facts)'),
    (
        "whose word it was is not told",
        "    if by.level is not Level.SESSION:\n",
        "    if by.level is Level.TEMPLATE:\n",
    ),
    ("which binding is at fault is not told", "    if _is_binding(by):\n", "    if False:\n"),
    ("the default is a binding", "(by.enforced or by.level is not Level.DEPLOYMENT)", "True"),
    ("the mode of a binding is not told", "Mode.ENFORCE if by.enforced else Mode.PREFER", "Mode.PREFER"),
    ("nothing that is required counts", "    if not missing:\n", "    if not missing or not by.subject:\n"),
    ("requirements are the image's fault", "_REQUIRED_IN[first.required.level]", "at.param"),
    ("the last that is missing is told", "missing[0], _told(missing[0])", "missing[-1], _told(missing[-1])"),
    ("a Template's requirement is the request's", "if it.required.level is not Level.SESSION:", "if False:"),
]

_OF_LOCATE = [
    ("a key's scope can be left out", "return key.scope if self.scope is None else self.scope", "return self.scope"),
    (
        "a key names the scope of others",
        "    if not key.holds(lineage):\n",
        "    if key.scope is None and not key.holds(lineage):\n",
    ),
    (
        "a stranger's scope is as good as one's own",
        "or any(it.project not in (None, project.id) for it in lineage)",
        "",
    ),
    ("an unknown scope is no scope", "    if not lineage or", "    if"),
    ("nobody has to name a scope", "if project.scope_required else None", "if False else None"),
    ("a key acts for any agent", "if key.agents is None or named in key.agents:", "if True:"),
    (
        "a key's agent can be left out",
        "    if named is None and len(key.agents) == 1:\n        return next(iter(key.agents))\n",
        "    if named is None:\n        return None\n",
    ),
    (
        "one of a key's agents is guessed",
        "if named is None and len(key.agents) == 1:",
        "if named is None and key.agents:",
    ),
    ("the path goes from narrow to broad", "for scope in reversed(lineage)), agent)", "for scope in lineage), agent)"),
    ("another field is at fault", 'param = None if asked.scope is None else "scope"', 'param = "scope"'),
]

_OF_SCOPE = [
    ("a cycle goes round for ever", "and name in rows and name not in seen:", "and name in rows and len(seen) < 99:"),
    ("a scope may stand below itself", "if scope.name in (it.name for it in above):", "if False:"),
    ("a project's scopes are open to all below", "if owner is not None and scope.project != owner:", "if False:"),
    ("a path has no end", "if len(above) >= DEEPEST:", "if len(above) > DEEPEST:"),
    (
        "a key is held to one scope alone",
        "self.scope in (it.name for it in lineage)",
        "self.scope in (it.name for it in lineage[:1])",
    ),
]

_OF_PROMOTE = [
    (
        "a channel that was moved is moved over",
        "if view.revision != asked.expected:",
        "if view.revision < asked.expected:",
    ),
    ("what is unfit is promoted", "    if view.unfit is not None:\n        return Fails(view.unfit)\n", ""),
    ("there is no deadline", "    if asked.deadline <= view.now:\n", "    if False:\n"),
    ("the last moment still counts", "asked.deadline <= view.now", "asked.deadline < view.now"),
    (
        "ready after the deadline is ready",
        "asked.deadline <= view.now:",
        "asked.deadline <= view.now and counted.ready < counted.needed:",
    ),
    ("one fewer is enough", "if counted.ready >= counted.needed:", "if counted.ready >= counted.needed - 1:"),
    ("as many is not enough", "if counted.ready >= counted.needed:", "if counted.ready > counted.needed:"),
    ("with nobody to run it all are ready", "max(len(nodes), 1)", "len(nodes)"),
    ("the gate does not count", " if promotion.nodes is None else promotion.nodes)", ")"),
    ("nodes that are away are ready", "return node.online and node", "return node"),
    ("what is prepared is ready", "is ReadinessState.READY\n", "in (ReadinessState.READY, ReadinessState.PULLING)\n"),
    ("what is tried again has failed", " and readiness.retry_at is None", ""),
    ("what is hopeless is waited for", "return _hopeless(view, counted) or counted", "return counted"),
    ("nodes to come cannot help", "counted.needed > len(view.nodes) or ", ""),
    ("one failure is the end", " or len(view.nodes) - failed >= counted.needed:", ":"),
    ("who is not ready is not told", "if not _is_ready(it))", "if not it.online)"),
    ("why is not told", "if it.readiness.fault}", "if not it.readiness.fault and it.readiness.fault}"),
]

_OF_UPGRADE = [
    ("a rollback is an upgrade", "stable.number > number", "stable.number != number"),
    ("the same release is newer", "stable.number > number", "stable.number >= number"),
    ("digests do not pin", "return None if held is None else held.release.number", "return None"),
    ("numbers do not pin", "return number if number in entry.releases else None", "return None"),
    (
        "a channel pins",
        "        case ByChannel():\n            return None\n",
        "        case ByChannel():\n            return min(entry.releases)\n",
    ),
    ("what is not there is pinned", "return number if number in entry.releases else None", "return number"),
    ("ids do not pin", "return catalog.owner_of(release)", "return None"),
    ("the id is told, not the name", "{entry.image.name}:", "{entry.image.id}:"),
    ("any channel is the one", "entry.channels.get(STABLE)", "max(entry.channels.values(), key=lambda it: it.number)"),
]

_OF_CATALOG = [("a digest moves to newer releases", "min(numbers, default=None)", "max(numbers, default=None)")]

OF_SELECTION = {
    RESOLVE: _OF_RESOLVE,
    LEVELS: _OF_LEVELS,
    CHAIN: _OF_CHAIN,
    BLAME: _OF_BLAME,
    LOCATE: _OF_LOCATE,
    SCOPE: _OF_SCOPE,
    PROMOTE: _OF_PROMOTE,
    UPGRADE: _OF_UPGRADE,
    CATALOG: _OF_CATALOG,
}
"""File → what is wrong, what stands there, what stands there instead."""
