package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/testkit"
)

// deployDir has the files that the tests below compare with the program.
const deployDir = "../../../docs/deploy"

// killedAfter is a supervisor's wait beyond drain_timeout: see scheduler.Node.Run.
const killedAfter = 20 * time.Second

// deployFiles are all files of a deployment, by their path from this folder.
func deployFiles(t *testing.T) []string {
	t.Helper()
	files := []string{"../../../.goreleaser.yaml"}
	err := filepath.WalkDir(deployDir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// documents decodes each document of a YAML file.
func documents[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(readFile(t, name)))
	for {
		var doc T
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, doc)
	}
}

var variable = regexp.MustCompile(config.EnvPrefix + `[A-Z0-9_]+`)

// TestDeployFiles parses every file, and looks up every variable of ours.
func TestDeployFiles(t *testing.T) {
	t.Parallel()
	for _, name := range deployFiles(t) {
		switch {
		case strings.Contains(name, "/templates/"): // their results are in kubernetes/
		case strings.HasSuffix(name, ".yaml"):
			documents[map[string]any](t, name)
		case strings.HasSuffix(name, ".json") && !json.Valid([]byte(readFile(t, name))):
			t.Errorf("%s is not JSON", name)
		}
		env := map[string]string{}
		for _, v := range variable.FindAllString(readFile(t, name), -1) {
			env[v] = ""
		}
		var faults config.Faults
		config.RefuseUnknown(env, &faults)
		if err := faults.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// placed is one process of ours as a file starts it.
type placed struct {
	file   string
	args   []string
	env    map[string]string
	grace  time.Duration // from SIGTERM to SIGKILL
	port   string        // port of the probes
	probes []string      // paths
	config string        // the text of config.yaml
}

// check starts nothing: it reads the command line and the configuration as the program would.
func (p placed) check(t *testing.T) *config.Loaded {
	t.Helper()
	a := understood(t, p.file, p.args)
	if a.Flags.Config != "/etc/escapement/config.yaml" {
		t.Errorf("%s: --config %s", p.file, a.Flags.Config)
	}
	env := map[string]string{}
	for name, value := range p.env {
		if strings.HasSuffix(name, "_FILE") {
			text := "0123456789abcdef"
			if strings.Contains(name, "URL") {
				text = "redis://redis:6379/0"
			}
			value = testkit.Write(t, text)
		}
		env[name] = value
	}
	l, err := config.Load(config.Source{File: testkit.Write(t, p.config), Env: env})
	if err != nil {
		t.Fatalf("%s: %v", p.file, err)
	}
	if l.Redis.URL == "" {
		t.Errorf("%s: no Redis", p.file)
	}
	if least := l.Node.DrainTimeout + killedAfter; p.grace < least {
		t.Errorf("%s: killed after %v, which is less than drain_timeout and %v", p.file, p.grace, killedAfter)
	}
	if _, port, err := net.SplitHostPort(l.HTTP.Listen); p.port != "" && (err != nil || port != p.port) {
		t.Errorf("%s: listens on %s, and is asked on port %s", p.file, l.HTTP.Listen, p.port)
	}
	for _, path := range p.probes {
		w := httptest.NewRecorder()
		healthHandler([]*fakeNode{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if w.Code != 200 {
			t.Errorf("%s: a probe of %s is answered %d", p.file, path, w.Code)
		}
	}
	return l
}

// understood parses a command line of ours, without the program's name.
func understood(t *testing.T, file string, args []string) *command.App {
	t.Helper()
	a := cmdtest.NewApp()
	cmd, rest, err := a.Root().Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil || !cmd.Runnable() {
		t.Errorf("%s: %v is no command line: %v", file, args, err)
	}
	return a
}

// A compose file, as far as it is ours.
type composed struct {
	Services map[string]struct {
		Command     any
		Environment map[string]string
		Ports       []string
		Volumes     []string
		Grace       time.Duration `yaml:"stop_grace_period"`
	}
}

// TestCompose holds the compose file to the program and to the files that it mounts.
func TestCompose(t *testing.T) {
	t.Parallel()
	file := deployDir + "/compose.yaml"
	text := regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`).ReplaceAllString(readFile(t, file), "$1")
	var c composed
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	var targets []string
	var nodes []*config.Loaded
	names := map[string]bool{}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, ".") {
				if _, err := os.Stat(filepath.Join(deployDir, from)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if s.Environment["ESCAPEMENT_NODE_NAME"] == "" {
			continue
		}
		names[s.Environment["ESCAPEMENT_NODE_NAME"]] = true
		_, port, _ := strings.Cut(strings.TrimPrefix(s.Ports[0], "127.0.0.1:"), ":")
		targets = append(targets, name+":"+port)
		nodes = append(nodes, placed{
			file: "compose.yaml, " + name, args: dockerfile(t, deployDir+"/Dockerfile").command, env: s.Environment,
			grace: s.Grace, port: port, config: readFile(t, "../../../config.yaml"),
		}.check(t))
	}
	if len(names) != 3 {
		t.Errorf("the nodes' names are %v, want three", names)
	}
	var prometheus struct {
		Scrape []struct {
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, deployDir+"/prometheus/prometheus.yaml")), &prometheus); err != nil {
		t.Fatal(err)
	}
	slices.Sort(targets)
	if got := prometheus.Scrape[0].Static[0].Targets; !slices.Equal(got, targets) {
		t.Errorf("Prometheus scrapes %v, the nodes are %v", got, targets)
	}
	for _, l := range nodes {
		handler := nodesOfLoaded(t, false, l, l.Node.Name).handler(l.HTTP)
		for _, target := range targets {
			r, w := httptest.NewRequestWithContext(t.Context(), "GET", "http://"+target+"/metrics", nil), httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != 200 {
				t.Errorf("%s: the scrape of %s is answered %d: %s", l.Node.Name, target, w.Code, w.Body)
			}
		}
	}
}

// image is a Dockerfile's settings of the process.
type image struct{ command, health []string }

// dockerfile reads the exec forms of a Dockerfile, which are the same in all its stages.
func dockerfile(t *testing.T, name string) (of image) {
	t.Helper()
	text := readFile(t, name)
	words := func(instruction string) []string {
		found := regexp.MustCompile(`(?m)^`+instruction+`(\[.*\])$`).FindAllStringSubmatch(text, -1)
		var list []string
		for _, f := range found {
			if f[1] != found[0][1] {
				t.Errorf("%s: two stages differ in %s", name, instruction)
			}
		}
		if len(found) == 0 || json.Unmarshal([]byte(found[0][1]), &list) != nil {
			t.Fatalf("%s: no %s in the exec form, which is the only one without a shell", name, instruction)
		}
		return list
	}
	if program := words("ENTRYPOINT "); !slices.Equal(program, []string{"escapement"}) {
		t.Errorf("%s: the program is %v", name, program)
	}
	of.command, of.health = words("CMD "), words("HEALTHCHECK .*CMD ")[1:]
	return of
}

// TestDockerfiles: command and health check are valid, and the program listens on the declared
// port.
func TestDockerfiles(t *testing.T) {
	t.Parallel()
	_, port, _ := net.SplitHostPort(config.Default().HTTP.Listen)
	for _, name := range []string{deployDir + "/Dockerfile", deployDir + "/release.Dockerfile"} {
		of := dockerfile(t, name)
		run, health := understood(t, name, of.command), understood(t, name, of.health)
		if run.Flags.Config != health.Flags.Config {
			t.Errorf("%s: health of %s, and the node's is %s", name, health.Flags.Config, run.Flags.Config)
		}
		if !strings.Contains(readFile(t, name), "\nEXPOSE "+port+"\n") {
			t.Errorf("%s: does not expose %s", name, port)
		}
	}
	// A tracked file that the build does not see would mark it as modified.
	ignored := readFile(t, "../../../.gitignore")
	for line := range strings.Lines(readFile(t, "../../../.dockerignore")) {
		pattern := strings.Trim(strings.TrimPrefix(strings.TrimSpace(line), "**/"), "/")
		if pattern != "" && pattern[0] != '#' && !strings.Contains(ignored, pattern) {
			t.Errorf(".dockerignore leaves out %s, and git does not", pattern)
		}
	}
}

// An object of Kubernetes, as far as it is ours.
type object struct {
	Kind string
	Data map[string]string
	Spec struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Image string
					Args  []string
					Env   []struct{ Name, Value string }
					Ports []struct {
						Name string
						Port int `yaml:"containerPort"`
					}
					Liveness  podProbe `yaml:"livenessProbe"`
					Readiness podProbe `yaml:"readinessProbe"`
				}
			}
		}
	}
	Strings map[string]string `yaml:"stringData"`
}

type podProbe struct {
	Get struct{ Path, Port string } `yaml:"httpGet"`
}

// TestManifests holds the manifests to the program, and to the chart that they are made from.
func TestManifests(t *testing.T) {
	t.Parallel()
	byKind := map[string]object{}
	for _, o := range append(documents[object](t, deployDir+"/kubernetes/escapement.yaml"), documents[object](t, deployDir+"/kubernetes/secret.yaml")...) {
		byKind[o.Kind] = o
	}
	c := byKind["Deployment"].Spec.Template.Spec.Containers[0]
	p := placed{
		file: "kubernetes/escapement.yaml", args: c.Args, env: map[string]string{}, config: byKind["ConfigMap"].Data["config.yaml"],
		grace: time.Duration(byKind["Deployment"].Spec.Template.Spec.Grace) * time.Second, port: fmt.Sprint(c.Ports[0].Port),
		probes: []string{c.Liveness.Get.Path, c.Readiness.Get.Path},
	}
	if !slices.Equal(p.probes, []string{"/healthz", "/readyz"}) || c.Liveness.Get.Port != c.Ports[0].Name || c.Readiness.Get.Port != c.Ports[0].Name {
		t.Errorf("probes %+v, %+v", c.Liveness, c.Readiness)
	}
	for _, e := range c.Env {
		p.env[e.Name] = e.Value
		if file, ok := strings.CutPrefix(e.Value, "/run/secrets/escapement/"); ok && byKind["Secret"].Strings[file] == "" {
			t.Errorf("%s names %s, which the Secret does not have", e.Name, file)
		}
	}
	p.check(t)

	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, deployDir+"/helm/escapement/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	released := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindStringSubmatch(readFile(t, "../../../docs/changelog.md"))
	if released == nil || chart.AppVersion != released[1] {
		t.Errorf("the chart is for version %s, the changelog's newest is %q", chart.AppVersion, released)
	}
	if !strings.HasSuffix(c.Image, ":"+chart.AppVersion) {
		t.Errorf("the manifests start %s, and the chart is for version %s: make manifests", c.Image, chart.AppVersion)
	}
}

// TestUnit holds the systemd unit to the program.
func TestUnit(t *testing.T) {
	t.Parallel()
	file := deployDir + "/systemd/escapement.service"
	unit := map[string]string{}
	for line := range strings.Lines(readFile(t, file)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && line[0] != '#' {
			unit[key] = value
		}
	}
	grace, err := time.ParseDuration(unit["TimeoutStopSec"] + "s")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(unit["ExecStart"])
	name, value, _ := strings.Cut(unit["Environment"], "=")
	placed{file: file, args: words[1:], env: map[string]string{name: value}, grace: grace, config: readFile(t, "../../../config.yaml")}.check(t)
	if id, _, _ := strings.Cut(unit["LoadCredential"], ":"); value != "%d/"+id {
		t.Errorf("%s=%s, and the credential is %s", name, value, id)
	}
	if want := fmt.Sprintf("%d %d", command.ExitUsage, command.ExitConfig); unit["RestartPreventExitStatus"] != want {
		t.Errorf("restarts are prevented for %s, want %s", unit["RestartPreventExitStatus"], want)
	}
	if unit["Type"] != "notify" {
		t.Errorf("Type=%s, and the program notifies", unit["Type"])
	}
}
