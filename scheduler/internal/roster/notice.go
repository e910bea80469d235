package roster

// MaxStalled is how many stalled runs a member's record names.
const MaxStalled = 20

// Stall is a run in flight that once made no progress for its job's stall_after.
type Stall struct {
	Job   string `json:"job"`
	Run   string `json:"run"`
	Tick  int64  `json:"tick"`  // ms
	After int64  `json:"after"` // the job's stall_after, ms
}

// Refusal is a change of the configuration that a node has refused; the node goes on with its old
// jobs.
type Refusal struct {
	At   int64  `json:"at"`   // by the node's clock, ms
	Text string `json:"text"` // the error, in one line
}

// withoutNotices is the member without the texts that only people read.
func (m Member) withoutNotices() Member {
	m.Trouble, m.Refused, m.Stalled = "", nil, nil
	return m
}
