package jobs

// OnStall says what the node does with a run that made no progress for Job.StallAfter.
type OnStall uint8

// The stall policies; the zero value is the default.
const (
	// OnStallTell logs it, and tells the hooks. The default.
	OnStallTell OnStall = iota
	// OnStallCancel also ends the run's context with cause ErrStalled. The run is recorded as cancelled, with the reason stalled.
	OnStallCancel
)

var onStallWords = words("on_stall")

// String returns the word used in config files: tell or cancel.
func (o OnStall) String() string { return onStallWords.word(uint8(o)) }

// MarshalText returns the word of o; an unknown value is an error.
func (o OnStall) MarshalText() ([]byte, error) { return onStallWords.marshal(uint8(o)) }

// UnmarshalText accepts exactly the words of String.
func (o *OnStall) UnmarshalText(text []byte) error { return unmarshal(onStallWords, text, o) }
