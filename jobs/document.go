package jobs

import (
	"errors"

	"github.com/escapement/escapement/jobs/spec"
)

// ParseDocument reads a job from a JSON object with the settings of the table, as files and the API have them. A key that is no setting
// goes to other first, which may be nil, and is a fault when other returns false. Settings that have their default beside one that does
// not use them count as left out.
//
// The error joins a *FieldError for each setting that cannot be read; the job has the others. Bounds, and what several settings make
// together, are for Validate.
func ParseDocument(text []byte, other func(key, value *spec.Node) bool) (j Job, err error) {
	doc, err := spec.ParseJSON(text)
	if err != nil {
		return j, &FieldError{Field: "job", Msg: err.Error()}
	}
	read := Settings.Decode(doc, &j, other)
	Settings.Idle(&j)
	return j, documentFaults(read)
}

// ParseShown is ParseDocument for an object that shows all settings, null for one without a value, beside other keys.
func ParseShown(text []byte) (j Job, err error) {
	doc, err := spec.ParseJSON(text)
	if err != nil {
		return j, &FieldError{Field: "job", Msg: err.Error()}
	}
	return j, documentFaults(Settings.DecodeShown(doc, &j, func(_, _ *spec.Node) bool { return true }))
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
