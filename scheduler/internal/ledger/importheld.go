package ledger

import "strings"

// holders are the definitions to announce in a partition, by their nodes and time:
// generation|revision|since.
type holders map[string]*holder

type holder struct {
	jobs map[string]string
	seen int64
}

// hold takes up which definitions of a job nodes announced. They become chunks, one for the jobs
// that the same nodes held.
func (i *Importer) hold(p int, d Document) {
	for _, h := range d.Held {
		if i.held[p] == nil {
			i.held[p] = make(holders)
		}
		of := h.Generation + "|" + h.Revision + "|" + ms(h.Since)
		into := i.held[p][of]
		if into != nil && (into.jobs[d.Job] != "" || len(into.jobs) == chunkJobs) {
			i.batch = append(i.batch, i.l.chunk(p, of, into))
			into = nil
		}
		if into == nil {
			into = &holder{jobs: make(map[string]string)}
			i.held[p][of] = into
		}
		into.jobs[d.Job], into.seen = h.Digest, max(into.seen, h.Seen)
	}
}

// chunk writes a chunk and its announcement.
func (l *Ledger) chunk(p int, of string, h *holder) write {
	at := strings.LastIndexByte(of, '|')
	text := chunkText(h.jobs)
	digest := chunkDigest(text)
	k := l.keys[p]
	w := write{part: p, keys: []string{k.gate, k.jobs}}
	w.do("H", k.chunks, digest, "1|"+of[at+1:]+"|"+text)
	w.do("Z", k.announced, ms(h.seen), digest+"|"+of[:at])
	return w
}
