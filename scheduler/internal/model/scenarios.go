package model

// Scenarios are the worlds that are explored at every test run. Each is small enough to be walked
// whole, and together they need every guard. P6 is excused where the clock steps; doc.go has the
// reason.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "network", Schedules: same(At(1, 2, 3)), Faults: 3, Network: true},
		{Name: "crash and rerun", Schedules: same(At(1, 2, 3)), Attempts: 2, Faults: 2, Network: true, Crashes: true},
		{Name: "pause and rerun", Schedules: same(At(1, 2, 3)), Attempts: 2, Faults: 2, Network: true, Pauses: true},
		{Name: "claimed ahead", Schedules: same(At(1, 2, 3)), Attempts: 2, Ahead: 1, Faults: 2, Network: true, Crashes: true},
		{Name: "ahead and paused", Schedules: same(At(1, 3)), Attempts: 2, Ahead: 1, Faults: 2, Network: true, Pauses: true, HandBacks: 1},
		{Name: "ahead and deploy", Schedules: [3]Ticks{At(1, 3), At(1, 2, 3)}, Ahead: 1, Faults: 1, Network: true, Crashes: true, Deploys: 2},
		{Name: "hand back", Schedules: same(At(1, 3)), Attempts: 2, Faults: 2, Network: true, HandBacks: 2},
		{Name: "shards", Schedules: same(At(1, 2)), Shards: [3]int8{2, 2}, Attempts: 2, Faults: 1, Network: true, Crashes: true},
		{Name: "fewer shards", Schedules: same(At(1, 2)), Shards: [3]int8{2, 1}, Faults: 1, Network: true, Deploys: 1},
		{Name: "more shards", Schedules: same(At(2)), Shards: [3]int8{1, 2}, Faults: 1, Network: true, Deploys: 1},
		{Name: "begun, then split", Schedules: same(At(1, 3)), Shards: [3]int8{1, 2}, Attempts: 2, Deploys: 1},
		{Name: "deploy", Schedules: [3]Ticks{At(1, 3), At(1, 2, 3)}, Faults: 1, Network: true, Crashes: true, Deploys: 2},
		{Name: "three definitions", Schedules: [3]Ticks{At(1, 3), At(2, 3), At(1, 2)}, Faults: 1, Network: true, Deploys: 1, Newest: 2},
		{Name: "same schedule", Schedules: [3]Ticks{At(1), At(1), At(2)}, Faults: 1, Network: true, Deploys: 1, Newest: 2},
		{Name: "deploy and clock", Schedules: [3]Ticks{At(1, 2), At(2)}, Deploys: 1, Steps: []int8{-4, 1, -1}, MostSteps: 1, Excused: []Promise{P6}},
		{Name: "clock", Schedules: same(At(1, 2)), Faults: 1, Network: true, Pauses: true, Steps: []int8{4, -4}, MostSteps: 1, Excused: []Promise{P6}},
		{Name: "clock a little", Schedules: same(At(1, 2)), Attempts: 2, Faults: 1, Network: true, Pauses: true, Steps: []int8{1, -1, 2, -2}, MostSteps: 1, Excused: []Promise{P6}},
		{Name: "clock swings", Schedules: same(At(1, 2)), Faults: 1, Network: true, Steps: []int8{4, -4}, MostSteps: 2, Attentive: true, Excused: []Promise{P6}},
		{Name: "failover", Schedules: same(At(1, 2)), Faults: 2, Network: true, Crashes: true, Failovers: 1, Excused: []Promise{P1, P2, P4, P6}},
	}
}

func same(t Ticks) [3]Ticks { return [3]Ticks{t, t, t} }
