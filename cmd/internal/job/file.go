package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/boundedfile"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// maxJobsFile bounds a file of stored jobs, in bytes.
const maxJobsFile = 64 << 20

// fileJob is a job in a file, with its own faults.
type fileJob struct {
	node   *spec.Node
	faults []spec.Fault
}

// readJobs reads a file of stored jobs, YAML or JSON. A fault is ErrRefused, with the file, the
// line and the job.
func readJobs(a *command.App, path string) (list []jobs.Job, err error) {
	text, err := jobsText(a, path)
	if err != nil {
		return nil, err
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
	for _, in := range found {
		var j jobs.Job
		got := jobs.Settings.Decode(in.node, &j, isVersion)
		jobs.Settings.Idle(&j)
		for _, f := range append(in.faults, got.Faults...) {
			faults = append(faults, jobFault(in.node, f))
		}
		list = append(list, j)
	}
	if err = cmp.Or(err, someOf(faults)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ops.ErrRefused, path, err)
	}
	return list, nil
}

// isVersion accepts the version of a shown job. It is no setting, and no file can set it.
func isVersion(key, _ *spec.Node) bool { return key.Text == "version" }

// jobFault is a fault with its line, the job and the setting, as far as they are known.
func jobFault(job *spec.Node, f spec.Fault) error {
	msg := f.Msg
	if f.Setting != "" {
		msg = f.Setting + ": " + msg
	}
	if name := job.Get("name"); name != nil && name.Text != "" {
		msg = "job " + spec.Clip(name.Text) + ": " + msg
	}
	return fmt.Errorf("line %d: %s", f.Line, msg)
}

// jobsText is the text of a file of stored jobs; - is stdin.
func jobsText(a *command.App, path string) (text []byte, err error) {
	if path == "-" {
		text, err = io.ReadAll(io.LimitReader(a.Stdin, maxJobsFile+1))
	} else {
		text, err = boundedfile.Read(path, maxJobsFile)
	}
	if size := new(boundedfile.SizeError); errors.As(err, &size) || len(text) > maxJobsFile {
		err = fmt.Errorf("%w: %s: is larger than %d MiB; part it", ops.ErrRefused, path, maxJobsFile>>20)
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

// jobsOfYAML finds the jobs of a file in YAML.
func jobsOfYAML(text []byte) (found []fileJob, err error) {
	var doc yaml.Node
	var value any
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
			return nil, notJobs(p.key.Line, p.key.Value)
		}
		for _, job := range aliased(p.value).Content {
			var in fileJob
			in.node = in.read(job, "")
			found = append(found, in)
		}
	}
	return found, nil
}

// jobsOfJSON finds the jobs of a file in JSON.
func jobsOfJSON(text []byte) (found []fileJob, err error) {
	root, err := spec.ParseJSON(text)
	if err != nil {
		return nil, err
	}
	for i, key := range root.Keys {
		if key.Text != "jobs" {
			return nil, notJobs(key.Line, key.Text)
		}
		if list := root.Items[i]; list.Kind == spec.NodeList {
			for _, job := range list.Items {
				found = append(found, fileJob{node: job})
			}
		}
	}
	return found, nil
}

func notJobs(line int, key string) error {
	return fmt.Errorf("line %d: %s is not known here; the file has a list jobs", line, print.Quote(key))
}

// read makes nodes for the table of a value in YAML, with its aliases and merges resolved. path
// names the value in the job; "" is the job. The caller has decoded the value once, which bounds
// its aliases. A date of YAML is a text, as it is written.
func (j *fileJob) read(n *yaml.Node, path string) *spec.Node {
	n = aliased(n)
	node := config.TableNode(n)
	for i := 0; n.Kind == yaml.SequenceNode && i < len(n.Content); i++ {
		node.Items = append(node.Items, j.read(n.Content[i], fmt.Sprintf("%s[%d]", path, i)))
	}
	if n.Kind != yaml.MappingNode {
		return node
	}
	for _, p := range pairsOf(n) {
		if tag := p.key.ShortTag(); tag != "!!str" && tag != "!!timestamp" {
			j.faults = append(j.faults, spec.Fault{Setting: path, Line: p.key.Line, Msg: "the key " + print.Quote(p.key.Value) + " is no text; write it in quotes"})
			continue
		}
		value := j.read(p.value, strings.TrimPrefix(path+"."+p.key.Value, "."))
		if s, _ := spec.Named(p.key.Value); path == "" && s.Kind == spec.Instant {
			value.Text = instantText(aliased(p.value))
		}
		node.Keys, node.Items = append(node.Keys, config.TableNode(p.key)), append(node.Items, value)
	}
	return node
}

// aliased is the node that an alias stands for, and any other node itself.
func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// instantText returns the instant of a date: YAML allows dates without a time or a zone.
func instantText(n *yaml.Node) string {
	var at time.Time
	if n.ShortTag() == "!!timestamp" && n.Decode(&at) == nil {
		return at.Format(time.RFC3339Nano)
	}
	return n.Value
}

// yamlPair is a key of a mapping with its value.
type yamlPair struct{ key, value *yaml.Node }

// pairsOf returns the pairs of a mapping, and the pairs that it merges (<<), over which its own
// win.
func pairsOf(n *yaml.Node) (pairs []yamlPair) {
	add := func(p yamlPair) {
		if !slices.ContainsFunc(pairs, func(has yamlPair) bool { return has.key.Value == p.key.Value }) {
			pairs = append(pairs, p)
		}
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key, value := n.Content[i], n.Content[i+1]; key.ShortTag() == "!!merge" {
			merged = append(merged, value)
		} else {
			pairs = append(pairs, yamlPair{key, value}) // which has no key twice, or yaml would have refused it
		}
	}
	for ; len(merged) > 0; merged = merged[1:] {
		switch from := merged[0]; from.Kind {
		case yaml.AliasNode:
			merged = append(merged, from.Alias)
		case yaml.SequenceNode:
			merged = append(merged, from.Content...)
		default:
			for _, p := range pairsOf(from) {
				add(p)
			}
		}
	}
	return pairs
}
