package schedtest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/audit"
)

// trace is the history, in order, for people; and a digest of it and of every message.
type trace struct {
	lines []string
	sum   hash.Hash
}

// add adds a line to the story and to the digest.
func (s *trace) add(at time.Duration, who, what string) {
	line := fmt.Sprintf("%13.6f  %-6s %s", at.Seconds(), who, what)
	s.lines = append(s.lines, line)
	s.hash().Write([]byte(line))
}

// fold adds to the digest alone.
func (s *trace) fold(sums ...uint64) {
	for _, x := range sums {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], x)
		s.hash().Write(b[:])
	}
}

func (s *trace) hash() hash.Hash {
	if s.sum == nil {
		s.sum = sha256.New()
	}
	return s.sum
}

func (s *trace) digest() string { return hex.EncodeToString(s.hash().Sum(nil)[:16]) }

// describe renders a request and its reply: the script, the words in the request that name jobs or
// runs, and the words of the answer.
func describe(m *message, reply []string) string {
	var named, answer []string
	for _, id := range m.commands[0] {
		if m.conn.process.cluster.runs[id] != nil {
			named = append(named, id)
		}
	}
	for _, w := range reply {
		if len(w) > 2 && len(w) < 12 && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" {
			answer = append(answer, w)
		}
	}
	slices.Sort(named) // a node may batch the same things in another order
	slices.Sort(answer)
	return m.op + " " + strings.Join(named, " ") + " -> " + strings.Join(answer, " ")
}

// foundNothing ends the line of a sweep that had nothing to look at.
const foundNothing = " sweep  -> "

// folded is a story in which sweeps in a row that found nothing are one line.
func folded(story []string) []string {
	var told []string
	for i := 0; i < len(story); {
		n := 0
		for i+n < len(story) && strings.HasSuffix(story[i+n], foundNothing) {
			n++
		}
		if n > 2 {
			told = append(told, fmt.Sprintf("%s, and %d more", story[i]+"nothing", n-1))
			i += n
			continue
		}
		told = append(told, story[i])
		i++
	}
	return told
}

// written renders a line of the sink.
func written(w audit.Write) string {
	refused := ""
	if w.Refused {
		refused = ", REFUSED: stale token"
	}
	part := ""
	if w.Shards > 1 {
		part = fmt.Sprintf(" shard %d of %d", w.Shard, w.Shards)
	}
	return fmt.Sprintf("%s of %s: %s tick %s%s token %d%s", w.Phase, w.Run, w.Job, w.Tick.Format("15:04:05.000"), part, w.Token, refused)
}

// tell adds a line for a message that is too common for the story. The nodes' goroutines call it
// for requests, and their order within an instant means nothing, so the line stays out of the
// digest.
func (c *cluster) tell(m *message, does string, words any) {
	if c.plan.wordy {
		line := fmt.Sprintf("%13.9f  %-6s %s %.300q", c.elapsed().Seconds(), m.conn.process.name, does, words)
		c.story.lines = append(c.story.lines, line)
	}
}
