package define

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// ChunkJobs is about how many jobs a chunk has at most, and half of that at least where a partition
// has more jobs than one has room for.
const ChunkJobs = 1000

// Chunk is some jobs of one partition, with the digests of the definitions that a node holds. The
// jobs of a chunk follow from their names and Of alone, so that a change of one job changes one
// chunk.
type Chunk struct {
	Part      int
	Place, Of int    // which of the partition's chunks it is, and how many there are: 1, 2, 4 and so on
	Digest    string // of its text
	Jobs      map[string]string
}

// Place returns which of a partition's chunks a job lies in.
func Place(job string, of int) int { return int(xxhash.Sum64String(job)>>40) & (of - 1) }

// Chunks are a node's definitions, job -> digest, by partition.
func Chunks(l *ledger.Ledger, held map[string]string) [][]Chunk {
	n := make([]int, len(l.Keys))
	for job := range held {
		n[l.Partition(job)]++
	}
	chunks := make([][]Chunk, len(l.Keys))
	for part, jobs := range n {
		of := 1
		for ; jobs > of*ChunkJobs; of *= 2 {
		}
		for place := 0; place < of && jobs > 0; place++ {
			chunks[part] = append(chunks[part], Chunk{Part: part, Place: place, Of: of, Jobs: make(map[string]string)})
		}
	}
	for job, digest := range held {
		of := chunks[l.Partition(job)]
		of[Place(job, len(of))].Jobs[job] = digest
	}
	for _, of := range chunks {
		for i := range of {
			of[i].Digest = ChunkDigest(ChunkText(of[i].Jobs))
		}
	}
	return chunks
}

// ChunkText is a chunk's stored text: job=digest, in the order of names, with commas between.
func ChunkText(held map[string]string) string {
	var b strings.Builder
	for i, job := range slices.Sorted(maps.Keys(held)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(job + "=" + held[job])
	}
	return b.String()
}

// ChunkDigest is the digest of a chunk's text.
func ChunkDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// parseChunk reads a stored chunk, and since when it is there, ms.
func parseChunk(digest, record string) (held map[string]string, since int64, err error) {
	format, rest, _ := strings.Cut(record, "|")
	at, text, _ := strings.Cut(rest, "|")
	if since, err = strconv.ParseInt(at, 10, 64); err != nil || format != "1" || ChunkDigest(text) != digest {
		return nil, 0, fmt.Errorf("%w: chunk %s is of another format, or holds something else", ledger.ErrUnknownFormat, digest)
	}
	held = make(map[string]string, strings.Count(text, "=")) // the texts share the record's memory
	for pair := range strings.SplitSeq(text, ",") {
		if job, digest, ok := strings.Cut(pair, "="); ok {
			held[job] = digest
		}
	}
	return held, since, nil
}
