"""The help texts that open with examples: of the whole, and of each command."""

EXAMPLES = {
    "up": (
        ("up", "the region of ./region.toml, or a sample"),
        ("up --for 30s --json", "half a minute; the status document at the end"),
        ("up --fresh", "the sample, as new"),
    ),
    "run": (
        ("run planner", "one role in the foreground, for systemd"),
        ("run enactor --zone b", "the enactor of zone b"),
        ("run agent --host h1 --zone a --room 4", "this host's agent; its instances outlive it"),
    ),
    "init": (
        ("init", "writes region.toml here; an existing one is left alone"),
        ("init --sample", "writes the sample region's file, complete"),
        ("init --config eu-2.toml", "under another name"),
    ),
    "check": (
        ("check", "is ./region.toml right, and what does it come to?"),
        ("check eu-2.toml", "another file"),
        ("check --json", "for an editor, or for CI"),
    ),
    "reload": (
        ("reload", "take up region.toml as it is now; a wrong one changes nothing"),
        ("reload --yes", "although it takes more than half a pool away"),
        ("plan", "what a reload would change (asks nothing, does nothing)"),
    ),
    "doctor": (
        ("doctor", "provider, rights, store, clock, owner, ports, disk; writes nothing"),
        ("doctor --json", "the same, for programs"),
        ("doctor --iam-policy", "the least that IAM must allow on Route 53"),
    ),
    "status": (
        ("status", "what is out; exit 1 if a person is needed"),
        ("status --watch", "the same, each second"),
        ("status --json", "as a document, fencepost.status/1"),
    ),
    "explain": (
        ("explain api.example.test", "why each of its addresses is in or out"),
        ("explain 127.0.2.1", "one target: votes, limits, what was done"),
        ("explain b", "one failure zone"),
    ),
    "history": (
        ("history", "what happened in the last hour"),
        ("history api.example.test --last 5m", "to one endpoint"),
        ("history --follow --only fenced,refused", "as it happens, these kinds only"),
    ),
    "plan": (
        ("plan", "what region.toml, as it stands now, would change; nothing is done"),
        ("plan --exit-code", "exit 1 if there is something to change, for CI"),
        ("plan --save p.json", "written down too, for  fencepost enact p.json"),
    ),
    "drain": (
        ('drain 127.0.1.1 --for 1h --reason "disk swap"', "out of service, however well"),
        ("drain --zone b --for 30m", "a whole failure zone"),
        ("resume 127.0.1.1", "ends it before its time"),
    ),
    "keep": (
        ('keep 127.0.1.2 --for 1h --reason "canary build"', "in service, however sick"),
        ("keep --zone b --for 30m", "a whole failure zone"),
        ("resume 127.0.1.2", "ends it before its time"),
    ),
    "pause": (
        ('pause web --for 1h --reason "switch work"', "nothing is taken out of or put back into pool web"),
        ("pause --zone b", "zone b stays as it is"),
        ("pause web --observe", "decide and show, change nothing"),
    ),
    "rollback": (
        ("rollback 41", "every endpoint back to what it had as of plan 41"),
        ('rollback 41 api.example.test --for 2h --reason "bad list"', "one endpoint, for two hours"),
        ("resume api.example.test", "ends it"),
    ),
    "repair": (
        ("repair api.example.test", "put back the newest set this machine remembers"),
        ("repair api.example.test --address 192.0.2.10 --address 192.0.2.11", "exactly these"),
        ("resume api.example.test", "give it back to the planner"),
    ),
    "withdraw": (
        ("withdraw api.example.test", "take the endpoint out of DNS; asks for its name"),
        ('withdraw api.example.test --confirm api.example.test --reason "moved"', "without being asked"),
        ("resume api.example.test", "bring it back"),
    ),
    "enact": (
        ("enact p.json", "exactly what  plan --save p.json  showed, or nothing"),
        ("enact p.json --yes", "without being asked, for CI"),
        ("plan --save p.json", "writes one"),
    ),
    "resume": (
        ("resume api.example.test", "end a repair, rollback or withdrawal"),
        ("resume 127.0.1.1", "end a drain or keep; a pool's or zone's name ends theirs"),
        ("resume --all", "end everything that a person placed"),
    ),
    "fleet hosts": (
        ("fleet hosts", "each host: its lease, its room, what a person said"),
        ("fleet hosts --zone b", "those of one failure zone"),
        ("fleet hosts --json", "as a document, fencepost.hosts/1"),
    ),
    "fleet instances": (
        ("fleet instances", "where each runs, and what it waits for"),
        ("fleet instances --host h7", "what runs at one host"),
        ("fleet instances --pool web --all", "also those that have ended"),
    ),
    "fleet launch": (
        ("fleet launch web --count 3 --wait", "three more of pool web; returns when DNS answers them"),
        ("fleet launch web --key deploy-17", "asked again with this key: the same instance"),
        ("fleet instances --pool web", "how they get on"),
    ),
    "fleet terminate": (
        ("fleet terminate web-k3v9q2mx", "ended once its host has stopped it, or has lapsed"),
        ("fleet terminate web-k3v9q2mx web-d7r4sahn --yes", "several, without being asked"),
        ("fleet instances --all", "whether they have ended"),
    ),
    "fleet drain": (
        ('fleet drain h7 --reason "disk swap"', "what runs there starts elsewhere first"),
        ("fleet drain h7 --gone", "it is gone for good: let its lease lapse"),
        ("resume h7", "ends it"),
    ),
    "fleet cordon": (
        ("fleet cordon h7 h8", "nothing more is placed there; what runs goes on"),
        ("fleet hosts", "shows who is cordoned"),
        ("resume h7 h8", "ends it"),
    ),
    "fleet forget": (
        ("fleet drain h7 --gone", "first: it is gone for good, so let its lease lapse"),
        ("fleet forget h7", "then it leaves the lists"),
        ("fleet hosts", "who is left"),
    ),
    "fleet calibrate": (
        ("fleet calibrate", "how many hosts may be asked at once; on a quiet day"),
        ("fleet calibrate --hosts 500 --for 1m", "on some of them, for longer"),
        ("fleet calibrate --yes --json", "over a thousand hosts, without being asked; as a document"),
    ),
    "prove": (
        ("prove", "eight races at a scratch name of your own domain; asks before it writes"),
        ("prove --yes --report races.md", "without asking; the findings as a page"),
        ("prove --clean --name fencepost-prove-1.example.com", "removes what an interrupted run left"),
    ),
    "explore": (
        ("explore", "every interleaving of two enactors and two planners, each fault alone"),
        ("explore --part leases --moves cordon+crash", "the fleet's leases, two faults together"),
        ("explore --as-was", "October 2025: the race, step by step (exit 1)"),
    ),
    "simulate": (
        ("simulate --seeds 50", "fifty regions, an hour of faults each"),
        ("simulate --scenario race --seed 7 --write race.trace", "one walk, and what happened in it, move by move"),
        ("simulate --scenario fleet-collapse", "100,000 hosts at once: as it was, and as it ships"),
    ),
    "replay": (
        ("replay", "October 2025 as it was, beside what was reported"),
        ("replay --guards production --dns-outage 2h37m", "the same outage on what ships"),
        ("replay --ablate", "what each guard would have bought"),
    ),
    "incident list": (
        ("incident list", "those that come with fencepost, and your own"),
        ("incident list --cause overload", "by kind of cause; --tag, --symptom too"),
        ("incident list --folder ~/incidents --json", "your own lie elsewhere; for programs"),
    ),
    "incident show": (
        ("incident show aws-2025-10-19", "October 2025, and which are related to it"),
        ("incident show incidents/eu-1.json", "a file: also whether it is right"),
        ("incident show aws-2025-10-19 --json", "as a document, fencepost.incident/1"),
    ),
    "incident record": (
        ("incident record --last 6h --out incidents", "what this region's history says went wrong, in a folder"),
        ("incident record --replay --out october.json", "of the replay of October 2025"),
        ("incident record --replay --guards production --dns-outage 2h37m", "of what ships, the same outage forced"),
    ),
    "import": (
        ("import live example.com@192.0.2.53 --key tsig.key > region.toml", "what a server answers today, by AXFR"),
        ("import octodns config/example.com.yaml", "from octoDNS's file, or a folder of them"),
        ("import route53-json records.json --only api.example.com", "from what the aws command lists"),
    ),
    "adopt": (
        ("adopt api.example.com", "take over records without a marker, as they stand"),
        ("adopt --all --yes", "every endpoint that waits for it"),
        ("plan", "which endpoints wait, and what a plan would then change"),
    ),
    "store copy": (
        ("store copy region.toml new.toml", "the first file's store into the second's; the region may run"),
        ("store copy region.toml new.toml --json", "the same, and a document at the end"),
        ("check new.toml", "is the second file right?"),
    ),
    "store restamp": (
        ("store restamp", "after a disk was set back: leases count as unknown"),
        ("store restamp --yes", "without being asked"),
        ("fleet hosts", "who has reported since"),
    ),
    "dev wipe": (
        ("dev wipe api.example.test", "delete its addresses as a careless writer would; it heals"),
        ("dev wipe api.example.test --marker", "its marker"),
        ("dev wipe api.example.test --both", "both"),
    ),
    "dev agents": (
        ("dev agents --hosts 10000", "so many hosts in one process, registered with the region's API"),
        ("dev agents --hosts 300 --zones a,b,c --deaf h00007", "one that doesn't answer"),
        ("dev agents --hosts 10000 --slow 40ms", "answers that take their time"),
    ),
    "dev route53": (
        ("dev route53 --zone example.test", "a strict Route 53 stand-in on 127.0.0.1:5380"),
        ("dev route53 --zone example.test --dns 127.0.0.1:5353", "and dig can ask it"),
        ("dev route53 --data route53.json --requests-per-s 0", "kept over a restart, as many requests as come"),
    ),
}
"""Three for each command: the words after ``fencepost``, and what they do."""

ABOUT = {
    "up": "every role of a region here, in the foreground",
    "run": "one role in the foreground, for systemd",
    "init": "write a region.toml to begin with",
    "check": "judge a region.toml, and say what its numbers come to",
    "reload": "take up region.toml as it is now",
    "doctor": "look at what a region stands on; writes nothing",
    "status": "what is in DNS, what is out, whether a person is needed",
    "explain": "why an address is in or out",
    "history": "what happened",
    "plan": "what would be changed now; nothing is done",
    "drain": "take targets out, however well",
    "keep": "keep targets in, however sick",
    "pause": "no removal and no return, in a pool, zone or the region",
    "rollback": "endpoints back to what an older plan gave them",
    "repair": "break glass: write addresses straight to the provider",
    "withdraw": "take an endpoint out of DNS",
    "enact": "exactly a saved plan, or nothing",
    "resume": "end any of these",
    "fleet hosts": "each host's lease, room and word",
    "fleet instances": "what was launched, where it runs, what it waits for",
    "fleet launch": "more instances of a pool, once a key",
    "fleet terminate": "end instances",
    "fleet drain": "move everything away from hosts",
    "fleet cordon": "place nothing more at hosts",
    "fleet forget": "take hosts that are gone off the lists",
    "fleet calibrate": "measure how many hosts may be asked at once",
    "prove": "race stale writers on your own DNS provider",
    "explore": "walk every interleaving of the deciders that ship",
    "replay": "replay an incident: as it was, and on what ships",
    "incident list": "records of incidents, by tag, symptom, cause",
    "incident show": "one of them, and which are related",
    "incident record": "make one: from the history, or a replay",
    "simulate": "walk whole regions through an hour of faults, by seed",
    "import": "a region.toml from records that exist; touches nothing",
    "adopt": "take over records that stand; no address changes",
    "store copy": "a region's store into another, to move there",
    "store restamp": "let leases count as unknown, once a store was set back",
    "dev wipe": "empty a record as a careless writer would (drills only)",
    "dev agents": "thousands of hosts in one process, to try a fleet on",
    "dev route53": "a strict Route 53 stand-in on this machine",
}


PAIRS = {
    "fleet": (
        "Hosts that run an agent, and the instances of a pool that are launched on them.\n"
        "For regions with [fleet] in region.toml; the sample has one.",
        (
            ("fleet instances", "where each runs"),
            ("fleet launch web --count 3 --wait", "returns when DNS answers them"),
            ("fleet drain h7", "what runs there moves first"),
        ),
        (
            ("look", "hosts", "Each host: its lease, its room, what a person said of it."),
            ("", "instances", "What was launched: where it runs, and what it waits for."),
            ("change", "launch", "More instances of a pool; once, however often it is asked."),
            ("", "terminate", "End instances: out of DNS, and their hosts stop them."),
            ("", "drain", "Move everything away from a host, make before break."),
            ("", "cordon", "Place nothing more at a host; what runs there goes on."),
            ("", "forget", "Take a host that is gone off the lists."),
            ("measure", "calibrate", "On a quiet day: how many hosts may be asked at once."),
        ),
        "fencepost resume HOST ends a drain or cordon.   docs/operating/fleet.md",
    ),
    "incident": (
        "Records of what happened, here and elsewhere: which symptoms, which causes,\n"
        "what would have helped. Records are JSON, fencepost.incident/1.",
        (
            ("incident list --cause overload", "by kind of cause"),
            ("incident show aws-2025-10-19", "October 2025, and what is related"),
            ("incident record --last 6h", "of what this region's history says"),
        ),
        (
            ("look", "list", "Those that come with fencepost, and your own in incidents/."),
            ("", "show", "One of them in full, and those related to it."),
            ("make", "record", "A new one, from this region's history or from a replay."),
        ),
        "None of them changes anything in a region.   docs/operating/incident-record.md",
    ),
    "dev": (
        "To practise on, and to develop against. The stand-ins stay on this machine;\n"
        "wipe writes to the region's own DNS server.",
        (
            ("dev wipe api.example.test", "a careless writer; see it heal"),
            ("dev agents --hosts 10000", "a fleet of ten thousand hosts"),
            ("dev route53 --zone example.test", "a Route 53 to try things on"),
        ),
        (
            ("drills", "wipe", "Empty a record unfenced, only where drills = true."),
            ("stand-ins", "agents", "So many hosts in one process, each deciding as a real one."),
            ("", "route53", "Route 53's API on loopback, in its own words and limits."),
        ),
        "fencepost up --provider route53-dev    the sample on it\ndocs/operating/commands.md",
    ),
    "store": (
        "What a region's store is moved with, and put right after it was set back.",
        (
            ("store copy region.toml new.toml", "one file's store into the other's"),
            ("store restamp", "after a disk was set back"),
            ("fleet hosts", "who has reported since"),
        ),
        (
            ("move", "copy", "One store into another; the region may run meanwhile."),
            ("mend", "restamp", "Let every lease count as unknown, until hosts report."),
        ),
        "docs/operating/store-move.md and docs/operating/store-lost.md",
    ),
}
"""The first words of commands of two words: about, examples, a sentence a command, where to read on."""


def lines(examples: tuple[tuple[str, str], ...]) -> list[str]:
    """Examples, one a line, what they do beside them (or below, where the command is long)."""
    width = max([len(words) for words, _ in examples if len(words) <= 40], default=0)
    found = []
    for words, about in examples:
        if len(words) <= width:
            found.append(f"  fencepost {words:<{width}}   {about}")
        else:
            found += [f"  fencepost {words}", f"            {'':<{width}} {about}"]
    return found


def overall() -> str:
    """What ``fencepost --help`` says."""
    from fencepost.cli import GROUPS

    found = lines((EXAMPLES["up"][0], EXAMPLES["status"][0], EXAMPLES["explain"][0]))
    found += ["", "A regional control plane that can't empty its own front door.", ""]
    for group, names in GROUPS.items():
        width = max(11, *map(len, names))
        for at, name in enumerate(names):
            found.append(f"  {group if at == 0 else '':<9} {name:<{width}} {ABOUT[name]}")
    found += [
        "",
        "Everywhere: --config FILE, --json, --timeout 10s, --color always|never, --help,",
        "--local (times). Each flag may also be set as FENCEPOST_FLAG.",
        "Exit codes: 0 done, 1 a finding or refusal, 2 usage or configuration,",
        "3 not reachable, 130 interrupted.",
    ]
    return "\n".join(found)


def of_pair(first: str) -> str:
    """What ``fencepost fleet --help`` and its like say."""
    about, examples, commands, more = PAIRS[first]
    groups, names = (max(len(row[at]) for row in commands) for at in (0, 1))
    found = [*lines(examples), "", about, ""]
    found += [f"  {group:<{groups}}  {name:<{names}}  {sentence}" for group, name, sentence in commands]
    found += ["", f"More on one, with its flags:  fencepost {first} {commands[0][1]} --help", more]
    return "\n".join(found)


def opening(command: str) -> str:
    """What a command's ``--help`` begins with."""
    return "\n".join([*lines(EXAMPLES[command]), ""])
