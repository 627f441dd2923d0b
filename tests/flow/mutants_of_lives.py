"""Faults of how long Sessions live."""

OUTLIVE, LIFE = "flow/outlive.py", "domain/life.py"

OF_LIVES = {
    OUTLIVE: [
        (
            "a start may take for ever",
            "STARTING if now - it.since > it.setup + SLOW_START",
            "STARTING if now < it.since",
        ),
        ("a setup has no time of its own", "STARTING if now - it.since > it.setup +", "STARTING if now - it.since >"),
        ("a node is lost at once", "now - it.away_since > LOST", "now >= it.away_since"),
        ("a lost node is waited for", "now - it.away_since > LOST", "now < it.away_since"),
        ("an end is over at once", "if now - it.since > SLOW_END", "if now >= it.since"),
        ("an end may take for ever", "return Finish() if", "return None if"),
        (
            "what is final ends again",
            "            return None\n        case _:",
            "            return _by_its_life(it, now)\n        case _:",
        ),
        (
            "nobody is told",
            "    if told is not None and holds and now >= told.at:",
            "    if now >= min(ends.values()):",
        ),
        ("what was told holds whatever happens", "ends[told.because] <= told.at", "ends[told.because] >= told.at"),
        ("another end does what was told", "told.because in ends and ", ""),
        ("it is told and never done", "now >= told.at:", "now < told.at:"),
        (
            "use takes nothing back",
            "told is None or holds else Foretell(None)",
            "told is None or told else Foretell(None)",
        ),
        ("the last of its ends is told", "first = min(due,", "first = max(due,"),
        ("who is told late has no notice", "max(ends[first], now + _notice(it, first))", "ends[first]"),
        ("it is told over and over", "told.because is first:", "told.because is not first:"),
        ("a life begins when it runs", "it.created_at + timedelta(seconds=it.life.longest)", "it.since + timedelta(0)"),
        ("what starts is idle", " and it.state is SessionState.RUNNING", ""),
        ("a command under way is no use", "now if it.busy else ", ""),
        ("use is forgotten", "max(it.used_at or it.since, it.since)", "it.since"),
        ("it is idle before it runs", "max(it.used_at or it.since, it.since)", "it.used_at or it.created_at"),
        ("a short life has a long notice", "min(NOTICE, timedelta(seconds=(whole or 0) / 4))", "NOTICE"),
        (
            "both ends have one notice",
            "it.life.idle if because is EndCause.IDLE else it.life.longest",
            "it.life.longest",
        ),
        ("a suspend may take for ever", "slow = now - it.since > SLOW_SUSPEND", "slow = now < it.since"),
        ("a suspend is over at once", "slow = now - it.since > SLOW_SUSPEND", "slow = now >= it.since"),
        (
            "a resume may take for ever",
            "RESUMING if now - it.since > it.setup + SLOW_START",
            "RESUMING if now < it.since",
        ),
        ("what is kept is kept for ever", "it.kept is not None and it.state is SessionState.SUSPENDED", "False"),
        ("what runs has been kept long enough", " and it.state is SessionState.SUSPENDED", ""),
        ("what is kept has the notice of what runs", "min(NOTICE_OF_KEPT,", "min(NOTICE,"),
    ],
    LIFE: [
        ("the Template's word goes before", "other.idle if self.idle is None else self.idle", "other.idle"),
        ("the longer one holds", "return min((bound", "return max((bound"),
        ("of two limits none holds", "_least((self.idle, ceiling.idle))", "self.idle"),
        ("a ceiling on life is none", "_least((self.longest, ceiling.longest))", "self.longest"),
    ],
}
