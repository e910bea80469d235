package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/boundedfile"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler"
)

// maxJobsFile bounds a file of stored jobs, in bytes.
const maxJobsFile = 64 << 20

// jobsFile is a file of stored jobs.
type jobsFile struct {
	Jobs []scheduler.StoredView `json:"jobs"`
}

// jobText is a job of a file, in JSON, and where it stands.
type jobText struct {
	line int
	text []byte
}

// readJobs reads a file of stored jobs, YAML or JSON. What stands in it wrongly is ErrRefused, with the file, the line and the job.
func (a *app) readJobs(path string) (file jobsFile, err error) {
	text, err := a.jobsText(path)
	if err != nil {
		return file, err
	}
	read := jobsOfYAML
	if json.Valid(text) {
		read = jobsOfJSON // as it is written, also what YAML would not take
	}
	found, err := read(text)
	if err == nil && len(found) == 0 {
		err = errors.New("has no jobs; write a list jobs")
	}
	var faults []error
	for i := 0; i < len(found) && err == nil; i++ {
		v, bad := scheduler.ParseStoredView(found[i].text)
		if bad != nil {
			faults = append(faults, fmt.Errorf("line %d: %s%w", found[i].line, jobNamed(found[i].text), bad))
		}
		file.Jobs = append(file.Jobs, v)
	}
	if err = cmp.Or(err, someOf(faults)); err != nil {
		return file, fmt.Errorf("%w: %s: %w", scheduler.ErrRefused, path, err)
	}
	return file, nil
}

// jobsText is the text of a file of stored jobs; - is stdin.
func (a *app) jobsText(path string) (text []byte, err error) {
	if path == "-" {
		text, err = io.ReadAll(io.LimitReader(a.stdin, maxJobsFile+1))
	} else {
		text, err = boundedfile.Read(path, maxJobsFile)
	}
	if size := new(boundedfile.SizeError); errors.As(err, &size) || len(text) > maxJobsFile {
		err = fmt.Errorf("%w: %s: is larger than %d MiB; part it", scheduler.ErrRefused, path, maxJobsFile>>20)
	}
	return text, err
}

// someOf joins the first faults of a file, in which each job may have one.
func someOf(faults []error) error {
	const most = 20
	if more := len(faults) - most; more > 0 {
		faults = append(faults[:most:most], fmt.Errorf("and %d faults more", more))
	}
	return errors.Join(faults...)
}

// jobNamed is "job NAME: ", for a job in JSON that has a name.
func jobNamed(text []byte) string {
	var job struct{ Name string }
	if _ = json.Unmarshal(text, &job); job.Name == "" { // other settings may be wrong
		return ""
	}
	return "job " + spec.Clip(job.Name) + ": "
}

// jobsOfYAML finds the jobs of a file in YAML.
func jobsOfYAML(text []byte) (found []jobText, err error) {
	var doc yaml.Node
	var value any
	var faults []error
	if err := yaml.Unmarshal(text, &doc); err != nil || doc.Kind == 0 {
		return nil, err
	}
	if err := doc.Decode(&value); err != nil { // which finds keys that stand there twice, and aliases without end
		return nil, err
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil
	}
	for _, p := range pairsOf(doc.Content[0]) {
		if p.key.Value != "jobs" {
			return nil, fmt.Errorf("line %d: %s is not known here; the file has a list jobs", p.key.Line, quote(p.key.Value))
		}
		list := p.value
		if list.Kind == yaml.AliasNode {
			list = list.Alias
		}
		for _, job := range list.Content {
			var b bytes.Buffer
			line := job.Line
			if job.Kind == yaml.AliasNode {
				job = job.Alias
			}
			instantsOfJob(job)
			var at lineError
			if bad := writeNode(&b, job, ""); errors.As(bad, &at) {
				faults = append(faults, fmt.Errorf("line %d: %s%w", at.line, nodeNamed(job), bad))
			}
			found = append(found, jobText{line, b.Bytes()})
		}
	}
	return found, someOf(faults)
}

// nodeNamed is jobNamed for a job in YAML.
func nodeNamed(job *yaml.Node) string {
	for _, p := range pairsOf(job) {
		if p.key.Value == "name" {
			return "job " + spec.Clip(p.value.Value) + ": "
		}
	}
	return ""
}

// jobsOfJSON finds the jobs of a file in JSON, which is valid.
func jobsOfJSON(text []byte) (found []jobText, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, _ := d.Token(); open != json.Delim('{') {
		return nil, nil
	}
	for d.More() {
		key, _ := d.Token()
		if key != "jobs" {
			return nil, fmt.Errorf("%q is not known here; the file has a list jobs", key)
		}
		if open, _ := d.Token(); open != json.Delim('[') {
			return nil, nil
		}
		line, told := 1, 0
		for d.More() {
			var job json.RawMessage
			if err := d.Decode(&job); err != nil {
				return nil, err
			}
			begin := int(d.InputOffset()) - len(job)
			line, told = line+bytes.Count(text[told:begin], []byte("\n")), begin
			found = append(found, jobText{line, job})
		}
		_, _ = d.Token() // the end of the list
	}
	return found, nil
}

// list are the jobs of a file. The error is ErrRefused.
func (f jobsFile) list() (list []jobs.Job, err error) {
	var faults []error
	for _, v := range f.Jobs {
		j, bad := v.Job()
		if bad != nil {
			faults = append(faults, fmt.Errorf("%w: job %s: %w", scheduler.ErrRefused, v.Name, bad))
		}
		list = append(list, j)
	}
	return list, someOf(faults)
}
