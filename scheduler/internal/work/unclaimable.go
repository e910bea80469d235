package work

// Why this node does not claim a job until it is registered (again).
const (
	Unregistered     = "not registered yet"
	Superseded       = "superseded: another definition is stored and a living node holds it"
	Displaced        = "another definition is stored" // the registration finds out whose
	Standby          = "on standby: another generation runs it"
	Sealed           = "the namespace is closed by a move"
	NotStored        = "the ledger has lost it"
	UnknownFormat    = "its record in the ledger has a format that this version does not know; it is left alone, update this node"
	KeptChanging     = "its entry kept changing while it was registered"
	Deleted          = "it was deleted from the stored jobs"
	TooManyFollowers = "too many jobs follow the one that it follows"
)

// Rejection is a job that cannot be claimed, and why.
type Rejection struct {
	Job *Job
	Why string
	// Detail is, of Sealed, why the partition is closed, as its gate has it; else "".
	Detail string
}
