package ledger

import (
	"context"
	"strings"
)

// holders are the definitions that are to be announced in a partition, by who held them and since when: generation|revision|since.
type holders map[string]*holder

type holder struct {
	jobs map[string]string
	seen float64
}

// announce takes up that a definition was held lately. It becomes part of a chunk of those that the same nodes held.
func (f *Filler) announce(ctx context.Context, q int, p Piece) error {
	if f.held[q] == nil {
		f.held[q] = make(holders)
	}
	h := f.held[q][p.value]
	if h != nil && (h.jobs[p.job] != "" || len(h.jobs) == chunkJobs) {
		f.parts[q].chunk(f.l.keys[q], p.value, h)
		h = nil
	}
	if h == nil {
		h = &holder{jobs: make(map[string]string)}
		f.held[q][p.value] = h
	}
	h.jobs[p.job], h.seen = p.name, max(h.seen, p.score)
	return f.flush(ctx, q, false)
}

// chunk writes a chunk and its announcement.
func (b *part) chunk(k keys, of string, h *holder) {
	at := strings.LastIndexByte(of, '|')
	text := chunkText(h.jobs)
	digest := chunkDigest(text)
	b.bytes += len(text)
	b.do("H", k.chunks, digest, "1|"+of[at+1:]+"|"+text)
	b.do("Z", k.announced, score(h.seen), digest+"|"+of[:at])
}
