package main

// success is an event that carries more. Versions before it leave it in the outbox, for a node that
// can read it.
var success = record{
	name: "success", lua: "event", mark: "2", key: "{ns:p}:outbox", typ: "Event", unread: true,
	doc:     "An event of a run that succeeded and set a result.",
	example: `2|report|1763726400000|1763726460000|1763726400000|1763726400000|1|succeeded|1763726401500|{"rows":7}`,
	fields:  append(event.fields[:len(event.fields):len(event.fields)], fPayload.as("the run's result, JSON").to("Result")),
	views:   []view{{name: "SUCCESS_UPSTREAM", doc: "the job that is followed", fields: []string{"upstream"}}},
}

// to is the field in another place of the Go struct.
func (f field) to(into string) field {
	f.into = into
	return f
}

var join = record{
	name: "join", lua: "join", mark: "1", key: "{ns:p}:joins", typ: "JoinState",
	doc:     "One tick of a job with several upstreams, and how they ended it.",
	example: "1|1763726401500||extract=succeeded,check=failed",
	fields: []field{
		{name: "at", kind: number, into: "at", doc: "when the first upstream had ended the tick, ms"},
		{name: "state", kind: text, into: "state", doc: "empty: not decided; r: the job runs, or ran; s: it was recorded as not run, which a later success may still change"},
		{name: "ends", kind: text, into: "ends", doc: "how each upstream ended the tick: 'name=outcome', with commas"},
	},
}
