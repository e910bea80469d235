package jobs

// RetryOn says where a failed function is called again.
type RetryOn uint8

// The places of a further try; the zero value is the default.
const (
	// RetrySameNode calls it again inside the same run, under the same lease and token. The default.
	RetrySameNode RetryOn = iota
	// RetryOtherNode ends the run as failed and hands its tick to another node after the backoff, as a further attempt with a new lease
	// and token. When no other node takes it within some seconds, the same node does.
	RetryOtherNode
)

var retryOnWords = words("retry.on")

// String returns the word used in config files: same_node or other_node.
func (r RetryOn) String() string { return retryOnWords.word(uint8(r)) }

// MarshalText returns the word of r; an unknown value is an error.
func (r RetryOn) MarshalText() ([]byte, error) { return retryOnWords.marshal(uint8(r)) }

// UnmarshalText accepts exactly the words of String.
func (r *RetryOn) UnmarshalText(text []byte) error { return unmarshal(retryOnWords, text, r) }
