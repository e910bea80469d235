package jobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs/spec"
)

// definitionVersion is the format version that Definition writes.
const definitionVersion = 1

// Settings reads and writes the settings of a Job by their table.
var Settings = spec.Bind[Job]()

// Definition is the stored form of a job's settings: all but the function. The TTL, the zone and
// the numbers of a chosen policy are stored also where they are the defaults, so that a later
// change of a default changes no stored definition. H stays H in the schedule.
type Definition struct {
	// Job has the settings, and no function.
	Job
	// Generation is the label of the deployed cluster. It is not a setting of the job. The
	// scheduler sets it before it stores the definition, so that the same settings of two
	// generations have two digests.
	Generation string
	// Stored is the version of a job that was stored at run time, 0 for one of a program. The
	// scheduler sets it.
	Stored int64
}

// Definition returns the stored form of j, with the built-in defaults filled in: a job that names a
// default has the same definition as a job that leaves it out.
func (j Job) Definition() Definition {
	j = j.WithDefaults(Defaults{}).clone()
	j.Func, j.Payload = nil, compact(j.Payload)
	return Definition{Job: j}
}

// AsStored returns the settings alone, as a job is stored at run time: of no generation and no
// version.
func (d Definition) AsStored() Definition {
	d.Generation, d.Stored = "", 0
	return d
}

// compact removes spaces from JSON, so that a digest does not depend on them. Text that is no JSON
// stays as it is.
func compact(text []byte) []byte {
	var b bytes.Buffer
	if len(text) == 0 || json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}

func decidesTicks(s spec.Setting) bool { return s.Ticks }

// SameTicks reports whether both definitions have the same settings of the ticks.
func (d Definition) SameTicks(other Definition) bool {
	return !slices.ContainsFunc(Settings.Diff(&d.Job, &other.Job), decidesTicks)
}

// Reopens reports whether a job that has had its MaxRuns by another definition may have ticks again
// by this one.
func (d Definition) Reopens(old Definition) bool {
	return old.MaxRuns > 0 && (d.MaxRuns == 0 || d.MaxRuns > old.MaxRuns)
}

// MarshalJSON returns the canonical text. A policy whose value is unknown is an error.
func (d Definition) MarshalJSON() ([]byte, error) {
	return Settings.Store(&d.Job, spec.Envelope{Format: definitionVersion, Generation: d.Generation, Version: d.Stored})
}

// Digest returns the first 16 hexadecimal characters of the SHA-256 of d's canonical JSON. Equal
// settings have equal digests, in every process.
func (d Definition) Digest() string {
	text, err := d.MarshalJSON()
	if err != nil {
		// Only an enum value outside its range gets here, and Validate refuses those. The digest
		// stays defined and differs from every valid definition's.
		text = fmt.Appendf(nil, "invalid %#v", d)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// ParseDefinition parses a stored definition. A newer or missing format version, an unknown key and
// a value out of range are errors that name it.
func ParseDefinition(text []byte) (Definition, error) {
	if err := checkVersion(text); err != nil {
		return Definition{}, err
	}
	d := Definition{}
	e, err := Settings.ReadStored(text, &d.Job)
	if err != nil {
		return Definition{}, fmt.Errorf("definition %q: %w", clip(d.Name), err)
	}
	d.Generation, d.Stored = e.Generation, e.Version
	d.Shards = max(d.Shards, 1)
	switch {
	case d.Name == "":
		return Definition{}, errors.New("definition: name must not be empty")
	case d.Schedule == "" && len(d.After) == 0:
		return Definition{}, fmt.Errorf("definition %q: schedule and after are both empty; one must say when it runs", clip(d.Name))
	case d.Schedule != "" && len(d.After) > 0:
		return Definition{}, fmt.Errorf("definition %q: has the schedule %q and runs after %q; only one may say when it runs",
			clip(d.Name), clip(d.Schedule), clip(strings.Join(d.After, ", ")))
	}
	return d, nil
}

func checkVersion(text []byte) error {
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	switch {
	case head.V > definitionVersion:
		return fmt.Errorf("definition: format %d was written by a newer version, and this program knows up to %d; upgrade this node", head.V, definitionVersion)
	case head.V < 1:
		return fmt.Errorf("definition: format version %d is not valid; \"v\" must be 1 to %d", head.V, definitionVersion)
	}
	return nil
}

// ParseDocument reads a job from a JSON object with the settings of the table, in the form of files
// and the API. A key that is no setting goes to other first, which may be nil, and is a fault when
// other returns false. A setting with its default value counts as left out where its With setting
// does not use it.
//
// The error joins a *FieldError for each unreadable setting; the job has the other settings.
// Bounds, and faults of several settings together, are for Validate.
func ParseDocument(text []byte, other func(key, value *spec.Node) bool) (j Job, err error) {
	doc, err := spec.ParseJSON(text)
	if err != nil {
		return j, &FieldError{Field: "job", Msg: err.Error()}
	}
	read := Settings.Decode(doc, &j, other)
	Settings.Idle(&j)
	return j, documentFaults(read)
}

// ParseShown is ParseDocument for an object with all settings that this version or a newer one has
// written: null stands for no value, and unknown keys and words are left out.
func ParseShown(text []byte) (j Job, err error) {
	doc, err := spec.ParseJSON(text)
	if err != nil {
		return j, &FieldError{Field: "job", Msg: err.Error()}
	}
	return j, documentFaults(Settings.DecodeShown(doc, &j))
}

func documentFaults(read spec.Decoded) error {
	var f faults
	for _, fault := range read.Faults {
		setting := fault.Setting
		if setting == "" {
			setting = "job"
		}
		f.add(setting, "%s", fault.Msg)
	}
	return errors.Join(f...)
}
