package cli

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
