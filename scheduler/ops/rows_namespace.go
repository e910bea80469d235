package ops

import (
	"context"
	"slices"
	"time"
)

// Namespace is the name of the namespace, its time, and whether a move has closed it.
type Namespace struct {
	Name string    `json:"name"`
	Now  time.Time `json:"now" wire:"set"` // Redis' time, by which ticks are due
	// Closed is where a move has taken the namespace; "" when none has closed it here.
	Closed string `json:"closed"`
}

var rowNamespace = &Operation[None, Namespace]{
	Info: Info{Method: "GET", Path: "namespace", Role: Viewer, Summary: "Redis' time, and whether a move has closed the namespace"},
	do: func(ctx context.Context, c *conn, _ None) (n Namespace, err error) {
		n.Name = c.namespace
		if n.Closed, err = closedWords(ctx, c); err != nil {
			return Namespace{}, err
		}
		n.Now, err = redisNow(ctx, c)
		return n, err
	},
}

// Namespace is the name of the namespace, its time, and whether a move has closed it.
func (c *Client) Namespace(ctx context.Context) (Namespace, error) {
	return call(ctx, c, rowNamespace, None{})
}

// Now is the time by which all ticks are due: Redis', or the time of most living nodes while they
// do not believe Redis' clock.
func (c *Client) Now(ctx context.Context) (time.Time, error) {
	if c.remote == nil {
		return redisNow(ctx, c.conn)
	}
	n, err := c.Namespace(ctx)
	return n.Now, err
}

// Closed reports in a few words that a move has closed the namespace here, and its new place; ""
// when none has. Records that are read here may then be outdated. It returns ErrUnknownNamespace
// when no node has ever run there.
func (c *Client) Closed(ctx context.Context) (string, error) {
	if c.remote == nil {
		return closedWords(ctx, c.conn)
	}
	n, err := c.Namespace(ctx)
	return n.Closed, err
}

var rowOverview = read("overview", "what runs, what is late, what comes next, and how the last day's ticks ended", plain(readOverview))

// Overview reads running and waiting runs, the jobs that are due first, and recent ends: as many as
// it takes for a day, or about a thousand. With an UnreachableError, the readable part is returned
// too.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	return call(ctx, c, rowOverview, None{})
}

type endsIn struct {
	Jobs []string `query:"job" max:"200"`                       // one of the jobs; once for each
	Each int      `query:"each" default:"20" min:"1" max:"200"` // how many ends of each job, from 1 to 200; of all jobs 10,000 at most
}

var rowEnds = &Operation[endsIn, map[string][]EndView]{
	Info: Info{Method: "GET", Path: "ends", Role: Viewer, Summary: "how the latest ticks of some jobs ended, the oldest first"},
	do: func(ctx context.Context, c *conn, in endsIn) (map[string][]EndView, error) {
		return listEnds(ctx, c, in.Jobs, in.Each)
	},
}

// ListEnds lists how the latest ticks of some jobs ended, the oldest first, at most n of each;
// shards of a tick are not listed. Jobs that are not there have none. It returns ErrRefused for
// more than 200 jobs, for an n that is not from 1 to 200, and for more than 10,000 ends in all.
func (c *Client) ListEnds(ctx context.Context, names []string, n int) (map[string][]EndView, error) {
	return call(ctx, c, rowEnds, endsIn{names, n})
}

var rowGenerations = &Operation[matchIn, []GenerationView]{
	Info: Info{Method: "GET", Path: "generations", Role: Viewer, Summary: "the generations, and what promoting each would change"},
	do: func(ctx context.Context, c *conn, in matchIn) ([]GenerationView, error) {
		all, err := listGenerations(ctx, c)
		return slices.DeleteFunc(all, func(g GenerationView) bool { return !matches(g.Name, in.Match) }), err
	},
}

// ListGenerations lists the generations of the namespace by name: each with living nodes, jobs, or
// stored definitions. Each is compared with the active definitions. It returns ErrUnknownNamespace.
func (c *Client) ListGenerations(ctx context.Context) ([]GenerationView, error) {
	return call(ctx, c, rowGenerations, matchIn{})
}

type promoteIn struct {
	Generation string `path:"name" none:"-"`
	PromoteOptions
	Reason string `json:"reason,omitempty"`
}

var rowPromote = &Operation[promoteIn, Promotion]{
	Info: Info{Method: "POST", Path: "generations/{name}/promote", Role: Operator, Long: true, Audit: "generations promote", Summary: "make a generation the one that runs; - is the one without a name"},
	do: func(ctx context.Context, c *conn, in promoteIn) (Promotion, error) {
		return promoteGeneration(ctx, c, in.Generation, in.PromoteOptions)
	},
	note: func(in promoteIn, _ Promotion) Action {
		return Action{Target: in.Generation, Author: in.Author, Reason: in.Reason, Detail: in.detail()}
	},
}

// Promote makes nodes run a generation's definitions: of all jobs, which makes the generation
// active, or of the jobs that match a pattern. One script switches each job, so two generations can
// never claim the same tick, and the generation's nodes claim within about 250 ms. A job with an
// unchanged schedule goes on at its cursor. When the schedule changes, due ticks of the old one are
// recorded as superseded, as in a deploy. Runs go on and hold their leases, unless CancelRunning is
// set.
//
// A repeated call completes an interrupted promotion under the same epoch. Another promotion may
// begin meanwhile; it replaces this one. To go back, promote the generation that was active before.
// Promote returns ErrRefused for an unknown generation, a generation without a living node, a
// generation whose nodes have just started, a pattern that is invalid or matches no job of the
// generation, an author that is not UTF-8, and, together with ErrClosed, while a move has closed
// the namespace. If Redis answers later than max_skew, or the clocks of a Cluster's masters differ
// by more, it fails with both instants in the error; call it again.
func (c *Client) Promote(ctx context.Context, generation string, o PromoteOptions) (Promotion, error) {
	return call(ctx, c, rowPromote, promoteIn{Generation: generation, PromoteOptions: o})
}

var rowVerify = read("verify", "check the promises on the recorded history", verifyRecords).slow()

// Verify checks, from the stored schedules and the recorded history, that the promises P1 to P3
// were kept, and names the records that it could not read. It works while nodes run, and writes
// nothing. It returns ErrUnknownJob when there is no job of the filter's name.
func (c *Client) Verify(ctx context.Context, f VerifyFilter) (Verification, error) {
	return call(ctx, c, rowVerify, f)
}

var rowProblems = read("problems", "what is wrong, in words, with what to do: errors first", plain(findProblems)).slow()

// Problems looks for faults of the namespace, its nodes and its Redis, each with a cure: errors
// first. It changes nothing. At most 20 problems of a code are listed one by one; a further one
// counts the rest. A record that may not or cannot be read is a problem itself. It looks at the
// name of every key in Redis and at every job: seconds, where there are 100,000. It returns an
// error only when Redis does not answer.
func (c *Client) Problems(ctx context.Context) ([]Problem, error) {
	return call(ctx, c, rowProblems, None{})
}

var rowAudit = read("audit", "what operators did, the newest first", listActions)

// Audit lists operators' acts, the newest first. The namespace keeps the last 2,000 actions. It
// returns ErrUnknownNamespace, and ErrRefused for a negative limit and an After that is no place.
func (c *Client) Audit(ctx context.Context, f ActionFilter) (Page[ActionView], error) {
	return call(ctx, c, rowAudit, f)
}
