package schedtest

// Check is what Play checks first.
func (p Plan) Check() error { return p.withDefaults().validate() }

// Wordy has every message told in the story.
func (p *Plan) Wordy() { p.wordy = true }

// Break has Redis run a script of the ledger with some of its text replaced: old, new, old, new, ...
func (p *Plan) Break(script string, edits ...string) {
	if p.broken == nil {
		p.broken = make(map[string][]string)
	}
	p.broken[script] = append(p.broken[script], edits...)
}
