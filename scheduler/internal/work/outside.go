package work

// Why a job is outside: this node does not claim it until it is registered (again).
const (
	Unregistered = "not registered yet"
	Superseded   = "superseded: another definition is stored and a living node holds it"
	Displaced    = "another definition is stored" // whose, its registration is to show
	Standby      = "on standby: another generation runs it"
	Sealed       = "the namespace is closed by a move"
	Vanished     = "the ledger has lost it"
	Foreign      = "its record in the ledger is not understood by this version; it is left alone, update this node"
	Moving       = "its entry kept moving while it was registered"
	Crowded      = "too many jobs follow the one that it follows"
)
