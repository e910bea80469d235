//go:build mutants

package schedtest_test

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

const shardsGo = "scheduler/shards.go"

// What makes one tick of many shards.
var split = []mutant{
	{name: "every node asks for all shards at once", harmless: "a shard is a pending run: who is granted it first runs it", edits: []edit{
		{shardsGo, `if node >= 0 && holders[node].ID == n.id {`, `if node >= 0 {`}}},
	{name: "no node asks for its own shards at once", plan: "shards", caught: slow, edits: []edit{
		{shardsGo, `if node >= 0 && holders[node].ID == n.id {`, `if false && holders[node].ID == n.id {`}}},
	{name: "shards of a dead node wait until the roster forgets it", plan: "shards, a crash", caught: verify.KindLate, edits: []edit{
		{"scheduler/turn.go", `slices.Contains(j.mine, shard), late)`, `slices.Contains(j.mine, shard), late-time.Minute)`}}},
	{name: "the end of one shard closes the tick", plan: "shards", caught: verify.KindBooks, edits: []edit{
		{preludeLua, `if t.left ~= '0' then`, `if false then`}}},
	{name: "a tick of shards is never closed", plan: "shards", caught: verify.KindBooks, edits: []edit{
		{preludeLua, `if t.left ~= '0' then`, `if true then`}}},
	{name: "a tick comes to what its last shard came to", plan: "shards", caught: verify.KindBooks, edits: []edit{
		{preludeLua, `if WORST[outcome] > (WORST[t.worst] or 0) then`, `if true then`}}},
	{name: "a shard holds the job against the others", plan: "shards", caught: verify.KindLate, edits: []edit{
		{claimLua, `if of ~= '' then -- the open tick holds the job`, `if false then`}}},
	{name: "a run is told as many shards as its node's definition has", plan: "shards, a deploy", caught: verify.KindMixed, edits: []edit{
		{tryGo, `Shards: g.lease.Shards,`, `Shards: max(1, g.job.Shards),`}}},
	{name: "a tick that is cancelled goes on with shards that wait", test: "./scheduler/schedtest TestShardScenarios", edits: []edit{
		{preludeLua, ` or r.of ~= '' and redis.call('HGET', cancels, r.of)`, ``}}},
	{name: "a shard's end is told to those who follow", test: "./scheduler/schedtest TestShardScenarios", edits: []edit{
		{preludeLua, `    part(k, history, e, r, outcome, freed, ms, keep, keep_for)`,
			`    tell(k.outbox, r.job, r.tick, '', r.tick, r.tick, 1, outcome, ms) part(k, history, e, r, outcome, freed, ms, keep, keep_for)`}}},
}

// inParts is a plan with a job of four shards. Nodes sweep rarely, so what they do not ask for at once waits.
func inParts(seed uint64) schedtest.Plan {
	p := schedtest.Plan{Seed: seed, For: 24 * second, Jobs: []jobs.Job{{
		Name: "parts", Schedule: "*/4 * * * * *", TTL: 3 * second, Shards: 4,
		Func: func(ctx context.Context, run *jobs.Run) error {
			if run.Shard() == 0 {
				return errors.New("no disk")
			}
			return patient(300*time.Millisecond)(ctx, run)
		},
	}}}
	p.Config.SweepEvery = 2 * second
	return p
}

func partsAndCrash(seed uint64) schedtest.Plan {
	p := inParts(seed)
	p.Config.SweepEvery = 0
	p.Faults = []schedtest.Fault{{Do: schedtest.Crash, Node: "a", When: 11900 * time.Millisecond, For: 9 * second}}
	return p
}

func partsAndDeploy(seed uint64) schedtest.Plan {
	p := inParts(seed)
	p.Config.SweepEvery, p.Config.MaxRunning = 0, 1
	p.Jobs[0].Func = patient(900 * time.Millisecond)
	later := p.Jobs[0]
	later.Shards = 2
	p.Versions = [][]jobs.Job{{later}}
	for i, name := range []string{"a", "b", "c"} {
		p.Faults = append(p.Faults, schedtest.Fault{Do: schedtest.Deploy, Node: name, Version: 1, When: 12200*time.Millisecond + time.Duration(i)*50*time.Millisecond, For: second / 10})
	}
	return p
}
