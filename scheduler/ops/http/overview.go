package opshttp

// endsSize is how many ends of each job are listed unless more or fewer are asked for; the library bounds both.
const endsSize = 20

func (s *Server) overview(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	o, err := c.client.Overview(c.Context())
	if o.Ended == nil {
		return nil, err
	}
	return partial{o}, err
}

func (s *Server) ends(c call) (any, error) {
	q := c.query()
	q.text("job")
	n := q.number("each", endsSize, 1, 200)
	if err := q.end(); err != nil {
		return nil, err
	}
	ends, err := c.client.ListEnds(c.Context(), q.values["job"], n)
	if ends == nil {
		return nil, err
	}
	return partial{ends}, err
}
