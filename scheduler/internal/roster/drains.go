package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// MaxDrains is how many names may be drained at once.
	MaxDrains = 1000

	// drainVersion is the format of a drain's record. A newer one is a drain too, and is left
	// alone.
	drainVersion = 1

	maxDrainName   = 256
	maxDrainAuthor = 64
	maxDrainReason = 256
)

// ErrTooManyDrains is returned when MaxDrains names are drained. Nothing was written.
var ErrTooManyDrains = errors.New("too many names are drained")

// Drained is the author of a name's drain, and the reason.
type Drained struct {
	// Author is who drained it; 64 bytes are kept, and a bar becomes a slash. Reason is why; 256
	// bytes are kept. Zero bytes are dropped from both.
	Author, Reason string
	// Since is when, by Redis' clock. The roster fills it in. It is zero for a record of a newer
	// version, of which only the drain is known.
	Since time.Time
}

// Drain drains the nodes of a name until Resume: Beat returns the drain to them, and shows them to
// the other nodes as draining. The drain belongs to the name, so a process that starts with that
// name drains too, and the name need not be in use yet. Drains do not expire. A repeated call
// replaces the author and the reason. It returns ErrTooManyDrains for one name more than MaxDrains.
func (r *Roster) Drain(ctx context.Context, name string, d Drained) error {
	if r.err != nil {
		return r.err
	}
	if err := checkDrainName(name); err != nil {
		return fmt.Errorf("roster: drain: %w", err)
	}
	answer, err := drainScript.Run(ctx, r.client, []string{r.keys.drains}, name, drainVersion, encodeDrained(d), MaxDrains).Int()
	if err != nil {
		return fmt.Errorf("roster: drain %q: %w", name, err)
	}
	if answer < 0 {
		return fmt.Errorf("roster: drain %q: %w, %d; resume those that are not needed any more", name, ErrTooManyDrains, MaxDrains)
	}
	return nil
}

// Resume ends a name's drain, also a drain that another version recorded, and reports whether there
// was one.
func (r *Roster) Resume(ctx context.Context, name string) (bool, error) {
	if r.err != nil {
		return false, r.err
	}
	n, err := r.client.HDel(ctx, r.keys.drains, name).Result()
	if err != nil {
		return false, fmt.Errorf("roster: resume %q: %w", name, err)
	}
	return n > 0, nil
}

// Drains returns the drained names.
func (r *Roster) Drains(ctx context.Context) (map[string]Drained, error) {
	if r.err != nil {
		return nil, r.err
	}
	stored, err := r.client.HGetAll(ctx, r.keys.drains).Result()
	if err != nil {
		return nil, fmt.Errorf("roster: read the drains: %w", err)
	}
	drains := make(map[string]Drained, len(stored))
	for name, record := range stored {
		drains[name] = decodeDrained(record)
	}
	return drains, nil
}

func checkDrainName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty; use one that a node beats with")
	case len(name) > maxDrainName || !utf8.ValidString(name):
		return fmt.Errorf("the name %.64q has more than %d bytes or is not valid UTF-8; use one that a node beats with", name, maxDrainName)
	}
	return nil
}

// encodeDrained is AUTHOR|REASON, to which the script adds VERSION|MS|.
func encodeDrained(d Drained) string {
	return cut(strings.ReplaceAll(d.Author, "|", "/"), maxDrainAuthor) + "|" + cut(d.Reason, maxDrainReason)
}

// decodeDrained reads a record. An unreadable one is still a drain, with no details.
func decodeDrained(record string) Drained {
	parts := strings.SplitN(record, "|", 4)
	if len(parts) != 4 || parts[0] != strconv.Itoa(drainVersion) {
		return Drained{}
	}
	ms, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return Drained{}
	}
	return Drained{Author: parts[2], Reason: parts[3], Since: time.UnixMilli(cmp.Or(ms, 1)).UTC()}
}

// cut keeps the first bytes of a text, up to the border of a rune.
func cut(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "") // a zero byte would end the script's text
}
