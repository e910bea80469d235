package roster

// keys are the roster's keys. The namespace is the hash tag, so that all keys share a slot and a
// script may use them together.
type keys struct {
	roster   string // hash: node ID -> record (JSON)
	seen     string // sorted set: node ID -> last beat, ms of Redis' clock
	sets     string // hash: digest -> set of named digests (JSON)
	setsSeen string // sorted set: digest -> last beat or announcement that named it, ms
	drains   string // hash: node's name -> who drained it, when and why; see encodeDrained
	control  string // hash: the namespace's control record, which the tick ledger writes; only its epoch is read
}

func newKeys(namespace string) keys {
	tag := "{" + namespace + "}:"
	return keys{
		roster:   tag + "roster",
		seen:     tag + "seen",
		sets:     tag + "sets",
		setsSeen: tag + "sets:seen",
		drains:   tag + "drains",
		control:  tag + "control",
	}
}
