// Package config reads and checks the configuration of the program.
package config

import (
	_ "embed"
	"time"

	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/scheduler/metrics"
)

// Config is config.yaml in memory. The yaml tag of a field is its key; the path of keys in
// capitals, joined by "_" and prefixed with ESCAPEMENT_, is its environment variable. A words tag
// lists the only values a text may have, a setting tag names the setting of a job that has them,
// and a secret tag marks values that no message shows.
type Config struct {
	// Namespace keeps two installations in one Redis apart. Letters, digits,
	// ".", "_" and "-", at most 64 bytes. Default "escapement".
	Namespace string   `yaml:"namespace"`
	Redis     Redis    `yaml:"redis"`
	Node      Node     `yaml:"node"`
	HTTP      HTTP     `yaml:"http"`
	Log       Log      `yaml:"log"`
	History   History  `yaml:"history"`
	Defaults  Defaults `yaml:"defaults"`
	Notify    Notify   `yaml:"notify"`
	Locks     Locks    `yaml:"locks"`
	// Calendars are lists of dates and ranges by name, for except and only of jobs: {holidays:
	// [2026-12-24, 2026-12-31..2027-01-01]}. An entry that ends in .ics is an iCalendar file,
	// relative to the folder of this one; its events are dates. Default none.
	Calendars map[string][]string `yaml:"calendars"`
	// Handlers are commands and calls by name, for jobs that are stored at run time. Default none.
	Handlers map[string]Handler `yaml:"handlers"`
	Jobs     []jobEntry         `yaml:"jobs"`
}

// Redis is the Redis that holds the ledger.
type Redis struct {
	// URL is in a form of move --help: redis:// and so on for one server; redis+cluster:// and
	// redis+sentinel:// contain Mode, Addrs and MasterName. It may hold a password and is never
	// printed whole. Empty: embedded, for dev only. Default "".
	//
	// In mode sentinel and cluster it may be empty, and never has a host, wherever it comes from
	// (--redis as well): redis://USER:PASSWORD@/0 gives the master's user, password and database,
	// and rediss uses TLS for the master and the sentinels. The sentinels do not get the master's
	// password: SentinelPassword is theirs. A Cluster has no database but 0.
	URL string `yaml:"url" secret:"true"`
	// Next is where the namespace is going to move, a complete URL in a form of move --help: nodes go
	// on there as soon as `move open` has opened it. Default "": nowhere.
	Next string `yaml:"next" secret:"true"`
	// Mode: standalone is one server, sentinel the master that sentinels name, cluster a Redis
	// Cluster. Default standalone.
	Mode string `yaml:"mode" words:"standalone sentinel cluster"`
	// Addrs are the sentinels in mode sentinel, some servers of the Cluster in mode cluster, each
	// HOST:PORT, at least one; further addresses are learnt from them. In mode standalone it is
	// empty.
	Addrs []string `yaml:"addrs"`
	// MasterName is the name of the master in mode sentinel. In another mode it is empty.
	MasterName string `yaml:"master_name"`
	// SentinelUser and SentinelPassword are for sentinels with a password of their own, in mode
	// sentinel or where URL begins with redis+sentinel://. An empty user is the default user.
	// Default "": no password.
	SentinelUser     string `yaml:"sentinel_user"`
	SentinelPassword string `yaml:"sentinel_password" secret:"true"`
	// TLS is for the connections to servers and sentinels of a URL that begins with rediss, and to
	// Addrs, which then need no URL. In Next, and in any other URL of a Redis, these settings may
	// be in the query: ?ca_file=...&cert_file=...
	TLS TLS `yaml:"tls"`
	// Confirm is whether a grant must be on a majority of a master's copies before its run or
	// command begins.
	Confirm string `yaml:"confirm" words:"none replicas"`
	// Replicas is how many replicas each master is meant to have, for Confirm: a majority is
	// counted of as many and the master, however many are connected. 0 to 200, default 0: the
	// replicas connected when the process starts.
	Replicas int `yaml:"replicas"`
	// Partitions is fixed when the namespace is created; a move changes it. 0 to 1024, default 0:
	// the stored number, or for a new namespace 1, on a Cluster 64.
	Partitions int `yaml:"partitions"`
}

// Node holds the settings of one node.
type Node struct {
	// Name shows in lists and logs: letters, digits and . _ : / -. Default: the host name.
	Name string `yaml:"name"`
	// Generation is the label of the deployed cluster: letters, digits and . _ -, at most 64 bytes.
	// The first in a namespace is active, further ones wait until they are promoted. Default "",
	// which is a generation as well.
	Generation string `yaml:"generation"`
	// Revision orders definitions. Default: the time of the build's commit.
	Revision string            `yaml:"revision"`
	Labels   map[string]string `yaml:"labels"`
	// Weight is the node's share of the jobs, relative to the other nodes. 1 to 1000, default 1.
	Weight int `yaml:"weight"`
	// MaxRunning bounds the runs at once on this node. 1 to 100000, default 512.
	MaxRunning int `yaml:"max_running"`
	// Grace is how late a tick is before nodes other than its owner take it. 10ms to 1m, default
	// 500ms.
	Grace time.Duration `yaml:"grace"`
	// ClaimAhead is how long before they are due this node claims ticks: a duration up to 500ms,
	// off, or auto for as long as the claims of one instant have taken lately. Default auto.
	ClaimAhead string `yaml:"claim_ahead"`
	// SweepEvery is the pause between two looks for overdue work. 10ms to 1m, default 250ms.
	SweepEvery time.Duration `yaml:"sweep_every"`
	// MaxSkew is how far Redis' clock may be from a node's estimate of it. 100ms to 1m, default 1s.
	MaxSkew time.Duration `yaml:"max_skew"`
	// MaxStep is the largest step of Redis' clock believed without a second opinion.
	// From max_skew to 24h, default 60s.
	MaxStep time.Duration `yaml:"max_step"`
	// FailoverHold is how long this node claims nothing, at most, after Redis was restarted or
	// failed over: until all nodes have reported their runs. 100ms to 1m, default 3s.
	FailoverHold time.Duration `yaml:"failover_hold"`
	// DrainTimeout is how long runs may go on after the order to stop. 1ms to 24h, default 30s.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
}

// HTTP is where health, API and console are served, and who may use the API. Without a token, a
// user and a proxy's header every client that reaches the address is an operator.
type HTTP struct {
	// Listen is HOST:PORT; port 0 takes a free one; empty: none. Default 127.0.0.1:8080.
	Listen string `yaml:"listen"`
	// BasePath is the path under which a proxy shows all of this, such as /ops; for a proxy that
	// leaves the path in its requests. Health is also served without it. Default "": none.
	BasePath string `yaml:"base_path"`
	// OperatorToken and ViewerToken are bearer tokens: an operator may change things, a viewer only
	// reads. Default "": none.
	OperatorToken string `yaml:"operator_token" secret:"true"`
	ViewerToken   string `yaml:"viewer_token" secret:"true"`
	// Users are the users of basic authentication: NAME: ROLE:PASSWORD, with viewer or operator for
	// ROLE. Default none.
	Users map[string]string `yaml:"users" secret:"true"`
	// ProxyHeader is the header in which a proxy in front names the user; no client may bypass the
	// proxy. Default "": none.
	ProxyHeader string `yaml:"proxy_header"`
	// ProxyRole is the role of users named by the proxy. Default viewer.
	ProxyRole string `yaml:"proxy_role" words:"viewer operator"`
	// ProxyRoleHeader is a header with the role instead. Default "": none.
	ProxyRoleHeader string `yaml:"proxy_role_header"`
	// Hosts are further names of the node where every client is an operator, beside localhost,
	// addresses and the host of Listen: for the API, the console, /metrics, /readyz and /version.
	// Default none.
	Hosts []string `yaml:"hosts"`
	// MetricsJobs is how many jobs have metrics of their own; further jobs share some. 0 to 100000,
	// default 1000.
	MetricsJobs int `yaml:"metrics_jobs"`
	// MetricsHistograms is whether all jobs share the histograms of lag and duration, or each of
	// these jobs has its own: 22 series more. Default shared.
	MetricsHistograms string `yaml:"metrics_histograms" words:"shared job"`
}

// JobsWithMetrics is MetricsJobs as a setting of the collector.
func (h HTTP) JobsWithMetrics() int {
	if h.MetricsJobs == 0 {
		return -1
	}
	return h.MetricsJobs
}

// Log shapes what the program writes to stderr.
type Log struct {
	// Level is the least level written. Default info.
	Level string `yaml:"level" words:"debug info warn error"`
	// Format auto is console on a terminal and json elsewhere. Default auto.
	Format string `yaml:"format" words:"auto console json"`
}

// History bounds the recorded history, per job; whichever bound is reached first counts.
type History struct {
	// Keep is a number of rows. 16 to 100000, default 200.
	Keep int `yaml:"keep"`
	// KeepFor is an age. 1m to 8760h, default 168h.
	KeepFor time.Duration `yaml:"keep_for"`
}

// Notify is who is notified of jobs that are not well. notify.Config documents its fields.
type Notify struct {
	// Every is the pause between two looks. 1s to 1h, default 5s.
	Every time.Duration `yaml:"every"`
	// GroupFor is how long the first event of a message waits for further events. 0s to 1h, default
	// 10s.
	GroupFor time.Duration `yaml:"group_for"`
	// LateAfter is how long a tick must have been due before its job is late or overdue. 10s to
	// 24h, default 1m.
	LateAfter time.Duration `yaml:"late_after"`
	// AtMost is the number of messages that a target gets in an hour. 1 to 1000, default 20.
	AtMost int `yaml:"at_most"`
	// Targets are the receivers. Default none: no notifications.
	Targets []Target `yaml:"targets"`
}

// Target is a receiver of notifications. notify.Target documents its fields.
type Target struct {
	Name string   `yaml:"name"`
	Jobs string   `yaml:"jobs"`
	On   []string `yaml:"on"`
	// Messages is whether each event is a message of its own. Default grouped.
	Messages string   `yaml:"messages" words:"grouped each"`
	Webhook  *Webhook `yaml:"webhook" secret:"true"`
	Command  []string `yaml:"command" secret:"true"`
}

// Webhook is an HTTP call to a receiver. notify.Webhook documents its fields.
type Webhook struct {
	URL     string            `yaml:"url" secret:"true"`
	Headers map[string]string `yaml:"headers" secret:"true"`
	Format  string            `yaml:"format" words:"json slack text"`
	Body    string            `yaml:"body" secret:"true"`
	// SecretFile is a file whose text stands for {{secret}} in the URL, the headers and the body.
	SecretFile string `yaml:"secret_file"`
}

// Defaults apply to every job without settings of its own.
type Defaults struct {
	// TTL is the lease time. 3s to 1h, default 15s.
	TTL     time.Duration `yaml:"ttl"`
	Overlap string        `yaml:"overlap" setting:"overlap"`
	// CatchUp and TimeZone pass over the jobs with after, which have no schedule.
	CatchUp  string `yaml:"catch_up" setting:"catch_up"`
	TimeZone string `yaml:"time_zone"`
}

// Default returns the configuration of an absent file.
func Default() Config {
	return Config{
		Namespace: "escapement",
		Redis:     Redis{Mode: ModeStandalone, Confirm: "none"},
		Node: Node{
			Weight: 1, MaxRunning: 512,
			Grace: 500 * time.Millisecond, ClaimAhead: aheadAuto, SweepEvery: 250 * time.Millisecond,
			MaxSkew: time.Second, MaxStep: time.Minute,
			FailoverHold: 3 * time.Second, DrainTimeout: 30 * time.Second,
		},
		HTTP:     HTTP{Listen: "127.0.0.1:8080", Users: map[string]string{}, Hosts: []string{}, ProxyRole: "viewer", MetricsJobs: metrics.DefaultJobs, MetricsHistograms: "shared"},
		Log:      Log{Level: "info", Format: "auto"},
		History:  History{Keep: 200, KeepFor: 168 * time.Hour},
		Defaults: Defaults{TTL: 15 * time.Second, Overlap: "skip", CatchUp: "latest", TimeZone: "UTC"},
		Locks:    Locks{Driver: lockstore.Redis, Servers: []string{}},

		Calendars: map[string][]string{}, Handlers: map[string]Handler{},

		Notify: Notify{Every: 5 * time.Second, GroupFor: 10 * time.Second, LateAfter: time.Minute, AtMost: 20},
	}
}

// The work of jobs and handlers of the configuration.

// Handler is the work of stored jobs that name it: a command or an HTTP call, with the job's
// payload.
type Handler struct {
	Exec *Exec `yaml:"exec"`
	HTTP *Call `yaml:"http" secret:"true"`
}

// Exec is a command as a job.
type Exec struct {
	Command []string `yaml:"command" secret:"true"`
	// Dir is the working directory. Default: the node's.
	Dir string `yaml:"dir"`
	// Env is added to the node's own environment.
	Env map[string]string `yaml:"env" secret:"true"`
	// Checkpoints: files gives the command files for its checkpoint and its progress. Default none.
	Checkpoints string `yaml:"checkpoints" words:"none files"`
	// Result: file gives the command a file for its result. Default none.
	Result string `yaml:"result" words:"none file"`
}

// Call is an HTTP call as a job. What its fields mean stands at httpjob.Options.
type Call struct {
	Method  string            `yaml:"method" words:"GET HEAD POST PUT PATCH DELETE OPTIONS"`
	URL     string            `yaml:"url" secret:"true"`
	Headers map[string]string `yaml:"headers" secret:"true"`
	Body    string            `yaml:"body" secret:"true"`
	Expect  string            `yaml:"expect"`
	// Result: body makes the body of the answer the run's result. Default none.
	Result string `yaml:"result" words:"none body"`
}

//go:generate go test . -run TestSchemaIsFresh -update

// SchemaText and ExampleText are made by TestSchemaIsFresh from config.go and the repository's
// config.yaml.
var (
	//go:embed config.schema.json
	SchemaText string
	//go:embed example.yaml
	ExampleText string
)
