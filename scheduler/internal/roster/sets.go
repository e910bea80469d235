package roster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// ErrDamaged is returned when a stored set does not match its digest. A node that holds the set
// repairs it by announcing it again.
var ErrDamaged = errors.New("stored set is damaged")

// setsPerRead bounds one reply of Redis to 16 MiB.
const setsPerRead = 16

// storedSet is a set as stored in Redis. V comes first, see announce.lua.
type storedSet struct {
	V    int               `json:"v"`
	Jobs map[string]string `json:"jobs"`
}

// SetDigest is the name of a set, name -> digest: 16 hex characters that depend on the content
// alone.
func SetDigest(defs map[string]string) string {
	h := sha256.New()
	for _, job := range slices.Sorted(maps.Keys(defs)) {
		// With lengths, no two sets are written the same way. A hash never fails.
		_, _ = fmt.Fprintf(h, "%d:", len(job))
		_, _ = io.WriteString(h, job)
		_, _ = fmt.Fprintf(h, "%d:", len(defs[job]))
		_, _ = io.WriteString(h, defs[job])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Announce stores a set, name -> digest, under set, which must be SetDigest(defs). The same set of
// many nodes is stored once. It is kept while beats name it, and 12 TTLs longer. A set over MaxSet
// bytes of JSON is refused with ErrTooLarge.
func (r *Roster) Announce(ctx context.Context, set string, defs map[string]string) error {
	if r.err != nil {
		return r.err
	}
	if want := SetDigest(defs); set != want {
		return fmt.Errorf("roster: announce: the set is called %q, but its digest is %s; pass SetDigest of the same set", set, want)
	}
	if defs == nil {
		defs = map[string]string{}
	}
	raw, err := json.Marshal(storedSet{V: formatVersion, Jobs: defs})
	if err != nil {
		return fmt.Errorf("roster: announce set %s: %w", set, err)
	}
	if _, err := decodeSet(set, string(raw)); err != nil {
		return fmt.Errorf("roster: announce set %s: it would not read back; use valid UTF-8 for names and digests", set)
	}
	if len(raw) > MaxSet {
		return fmt.Errorf("roster: announce set %s: %d names take %d bytes, more than %d; spread them over several namespaces: %w",
			set, len(defs), len(raw), MaxSet, ErrTooLarge)
	}
	err = announceScript.Run(ctx, r.client, []string{r.keys.sets, r.keys.setsSeen},
		set, raw, formatVersion, idle.Milliseconds()).Err()
	if err != nil {
		return fmt.Errorf("roster: announce set %s: %w", set, err)
	}
	return nil
}

// Sets returns the stored sets with these digests: digest -> name -> digest. Sets that are not
// stored, or in a newer format, are missing in the map. Damaged sets are missing too, and are
// listed in an error that wraps ErrDamaged; the map still has all other sets.
func (r *Roster) Sets(ctx context.Context, digests []string) (map[string]map[string]string, error) {
	if r.err != nil {
		return nil, r.err
	}
	wanted := slices.Compact(slices.Sorted(slices.Values(digests)))
	out := make(map[string]map[string]string, len(wanted))
	var damaged []error
	for part := range slices.Chunk(wanted, setsPerRead) {
		values, err := r.client.HMGet(ctx, r.keys.sets, part...).Result()
		if err != nil {
			return nil, fmt.Errorf("roster: read %d sets: %w", len(part), err)
		}
		for i, v := range values {
			raw, stored := v.(string)
			if !stored {
				continue
			}
			jobs, err := decodeSet(part[i], raw)
			if err != nil {
				damaged = append(damaged, err)
			} else if jobs != nil {
				out[part[i]] = jobs
			}
		}
	}
	return out, errors.Join(damaged...)
}

// decodeSet returns nil and no error for a set of a newer format.
func decodeSet(digest, raw string) (map[string]string, error) {
	// The version first: a newer format may give the other fields other types.
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal([]byte(raw), &version); err != nil {
		return nil, fmt.Errorf("roster: set %s: %w; announce it again: %w", digest, err, ErrDamaged)
	}
	if version.V > formatVersion {
		return nil, nil
	}
	s := storedSet{Jobs: map[string]string{}}
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return nil, fmt.Errorf("roster: set %s: %w; announce it again: %w", digest, err, ErrDamaged)
	}
	if got := SetDigest(s.Jobs); s.V != formatVersion || got != digest {
		return nil, fmt.Errorf("roster: set %s has version %d and digest %s; announce it again: %w", digest, s.V, got, ErrDamaged)
	}
	return s.Jobs, nil
}
