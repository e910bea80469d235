package jobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// definitionVersion is the format version that Definition writes.
const definitionVersion = 1

// maxMS bounds the stored durations to what a time.Duration can hold.
const maxMS = int64(1<<63-1) / int64(time.Millisecond)

// Definition is the stored form of a job's settings: all but the function. A policy that is not chosen is left out. The
// TTL, the zone and the numbers of a chosen policy are stored also where they are the defaults, so that a later change of
// a default changes no stored definition. H stays H in the schedule.
type Definition struct {
	V            int               `json:"v"`
	Name         string            `json:"name"`
	Schedule     string            `json:"schedule"`
	TimeZone     string            `json:"time_zone"`
	Except       []string          `json:"except,omitempty"`
	Only         []string          `json:"only,omitempty"`
	StartAt      int64             `json:"start_at_ms,omitempty"`
	EndAt        int64             `json:"end_at_ms,omitempty"`
	Jitter       int64             `json:"jitter_ms,omitempty"`
	MaxRuns      int               `json:"max_runs,omitempty"`
	Overlap      Overlap           `json:"overlap,omitempty"`
	CatchUp      CatchUp           `json:"catch_up,omitempty"`
	CatchUpMax   int               `json:"catch_up_max,omitempty"`
	StartWithin  int64             `json:"start_within_ms,omitempty"`
	OnCrash      OnCrash           `json:"on_crash,omitempty"`
	RerunMax     int               `json:"rerun_max,omitempty"`
	Timeout      int64             `json:"timeout_ms,omitempty"`
	StallAfter   int64             `json:"stall_after_ms,omitempty"`
	OnStall      OnStall           `json:"on_stall,omitempty"`
	TTL          int64             `json:"ttl_ms"`
	RetryMax     int               `json:"retry_max,omitempty"`
	RetryBackoff int64             `json:"retry_backoff_ms,omitempty"`
	RetryMaxBack int64             `json:"retry_max_backoff_ms,omitempty"`
	RetryTimeout int64             `json:"retry_timeout_ms,omitempty"`
	RetryOn      RetryOn           `json:"retry_on,omitempty"`
	Shards       int               `json:"shards,omitempty"`
	Params       []string          `json:"params,omitempty"`
	Placement    Placement         `json:"placement,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	After        Upstreams         `json:"after,omitzero"`
	When         When              `json:"when,omitempty"`
	LimitGroup   string            `json:"limit_group,omitempty"`
	LimitMax     int               `json:"limit_max,omitempty"`
	Guard        string            `json:"guard,omitempty"`
	Handler      string            `json:"handler,omitempty"`
	Payload      json.RawMessage   `json:"payload,omitempty"`
	ManagedBy    string            `json:"managed_by,omitempty"`
	// SuccessWithin is that of the job's Expect.
	SuccessWithin int64 `json:"success_within_ms,omitempty"`
	// Generation is the label of the deployed cluster. It is not a setting of the job. The scheduler sets it before it
	// stores the definition, so that the same settings of two generations have two digests.
	Generation string `json:"generation,omitempty"`
	// Stored is the version of a job that was stored at run time, 0 for one of a program. The scheduler sets it.
	Stored int64 `json:"stored,omitempty"`
}

// Definition returns the stored form of j, with the built-in defaults filled in: a job that sets a default and one that
// leaves it out have the same definition.
func (j Job) Definition() Definition {
	j = j.WithDefaults(Defaults{})
	d := Definition{
		V: definitionVersion, Name: j.Name, Schedule: j.Schedule, TimeZone: j.TimeZone,
		Except: slices.Clone(j.Except), Only: slices.Clone(j.Only), StartAt: milliOf(j.StartAt), EndAt: milliOf(j.EndAt),
		Jitter: j.Jitter.Milliseconds(), MaxRuns: j.MaxRuns,
		Overlap: j.Overlap, CatchUp: j.CatchUp, CatchUpMax: j.CatchUpMax,
		StartWithin: j.StartWithin.Milliseconds(), OnCrash: j.OnCrash, RerunMax: j.RerunMax,
		Timeout: j.Timeout.Milliseconds(), StallAfter: j.StallAfter.Milliseconds(), OnStall: j.OnStall, TTL: j.TTL.Milliseconds(),
		RetryMax: j.Retry.Max, RetryBackoff: j.Retry.Backoff.Milliseconds(),
		RetryMaxBack: j.Retry.MaxBackoff.Milliseconds(), RetryTimeout: j.Retry.Timeout.Milliseconds(), RetryOn: j.Retry.On,
		Params: slices.Clone(j.Params), Placement: j.Placement,
		Labels: maps.Clone(j.Labels), After: upstreams(j.After, j.When), When: j.When, SuccessWithin: j.Expect.SuccessWithin.Milliseconds(),
		LimitGroup: j.Limit.Group, LimitMax: j.Limit.Max, Guard: j.Guard,
		Handler: j.Handler, Payload: compact(j.Payload), ManagedBy: j.ManagedBy,
	}
	if j.Shards != 1 {
		d.Shards = j.Shards
	}
	return d
}

// Job returns the settings of d as a job without a function.
func (d Definition) Job() Job {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return Job{
		Name: d.Name, Schedule: d.Schedule, TimeZone: d.TimeZone,
		Except: slices.Clone(d.Except), Only: slices.Clone(d.Only), StartAt: timeOf(d.StartAt), EndAt: timeOf(d.EndAt),
		Jitter: ms(d.Jitter), MaxRuns: d.MaxRuns,
		Overlap: d.Overlap, CatchUp: d.CatchUp, CatchUpMax: d.CatchUpMax,
		StartWithin: ms(d.StartWithin), OnCrash: d.OnCrash, RerunMax: d.RerunMax,
		Timeout: ms(d.Timeout), StallAfter: ms(d.StallAfter), OnStall: d.OnStall, TTL: ms(d.TTL),
		Retry:  Retry{Max: d.RetryMax, Backoff: ms(d.RetryBackoff), MaxBackoff: ms(d.RetryMaxBack), Timeout: ms(d.RetryTimeout), On: d.RetryOn},
		Shards: max(d.Shards, 1), Params: slices.Clone(d.Params), Placement: d.Placement,
		Labels: maps.Clone(d.Labels), After: slices.Clone(d.After.Names), When: d.When, Expect: Expect{SuccessWithin: ms(d.SuccessWithin)},
		Limit: Limit{Group: d.LimitGroup, Max: d.LimitMax}, Guard: d.Guard,
		Handler: d.Handler, Payload: bytes.Clone(d.Payload), ManagedBy: d.ManagedBy,
	}
}

// AsStored returns the settings alone, as a job is stored at run time: of no generation and no version.
func (d Definition) AsStored() Definition {
	d.Generation, d.Stored = "", 0
	return d
}

// compact is JSON without spaces, so that a digest does not depend on them. What is no JSON stays as it is.
func compact(text []byte) json.RawMessage {
	var b bytes.Buffer
	if len(text) == 0 || json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}

// milliOf returns an instant in milliseconds since 1970; 0 for the zero time, which timeOf returns for 0.
func milliOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// SameTicks reports whether the settings that decide the ticks are those of another definition.
func (d Definition) SameTicks(other Definition) bool {
	return d.Schedule == other.Schedule && d.TimeZone == other.TimeZone && slices.Equal(d.After.Names, other.After.Names) && d.When == other.When &&
		slices.Equal(d.Except, other.Except) && slices.Equal(d.Only, other.Only) && d.StartAt == other.StartAt && d.EndAt == other.EndAt &&
		d.Jitter == other.Jitter
}

// WithoutTicks returns d without the settings that SameTicks compares.
func (d Definition) WithoutTicks() Definition {
	d.Schedule, d.TimeZone, d.After, d.When, d.Except, d.Only, d.StartAt, d.EndAt, d.Jitter = "", "", Upstreams{}, 0, nil, nil, 0, 0, 0
	return d
}

// Digest returns the first 16 hexadecimal characters of the SHA-256 of d's canonical JSON. Equal settings have equal
// digests, in every process.
func (d Definition) Digest() string {
	text, err := json.Marshal(d)
	if err != nil {
		// Only an enum value outside its range gets here, and Validate refuses those. The
		// digest stays defined and differs from that of every valid definition.
		text = []byte(fmt.Sprintf("invalid %#v", d))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// ParseDefinition parses a stored definition. A newer or missing format version, an unknown key and a value out of range
// are errors that name it.
func ParseDefinition(text []byte) (Definition, error) {
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Definition{}, fmt.Errorf("definition: %w", err)
	}
	if head.V > definitionVersion {
		return Definition{}, fmt.Errorf("definition: format %d was written by a newer version, and this program knows up to %d; upgrade this node",
			head.V, definitionVersion)
	}
	if head.V < 1 {
		return Definition{}, fmt.Errorf("definition: format version %d is not valid; \"v\" must be 1 to %d",
			head.V, definitionVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var d Definition
	if err := dec.Decode(&d); err != nil {
		return Definition{}, fmt.Errorf("definition: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Definition{}, errors.New("definition: text follows the JSON object; store one object")
	}
	if err := d.inRange(); err != nil {
		return Definition{}, err
	}
	return d, nil
}

func (d Definition) inRange() error {
	switch {
	case d.Name == "":
		return errors.New("definition: name must not be empty")
	case d.Schedule == "" && len(d.After.Names) == 0:
		return fmt.Errorf("definition %q: schedule and after are both empty; one must say when it runs", clip(d.Name))
	case d.Schedule != "" && len(d.After.Names) > 0:
		return fmt.Errorf("definition %q: has the schedule %q and runs after %q; only one may say when it runs",
			clip(d.Name), clip(d.Schedule), clip(strings.Join(d.After.Names, ", ")))
	}
	for _, f := range []struct {
		key string
		n   int64
	}{
		{"catch_up_max", int64(d.CatchUpMax)}, {"start_within_ms", d.StartWithin},
		{"rerun_max", int64(d.RerunMax)}, {"timeout_ms", d.Timeout}, {"stall_after_ms", d.StallAfter}, {"ttl_ms", d.TTL},
		{"retry_max", int64(d.RetryMax)}, {"retry_backoff_ms", d.RetryBackoff},
		{"retry_max_backoff_ms", d.RetryMaxBack}, {"retry_timeout_ms", d.RetryTimeout}, {"shards", int64(d.Shards)}, {"success_within_ms", d.SuccessWithin},
		{"limit_max", int64(d.LimitMax)}, {"start_at_ms", d.StartAt}, {"end_at_ms", d.EndAt}, {"jitter_ms", d.Jitter}, {"max_runs", int64(d.MaxRuns)},
	} {
		if f.n < 0 || f.n > maxMS {
			return fmt.Errorf("definition %q: %s %d is outside 0 to %d", d.Name, f.key, f.n, maxMS)
		}
	}
	return nil
}
