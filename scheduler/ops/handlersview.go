package ops

import (
	"context"
	"maps"
	"slices"
)

// HandlerView is a handler that a node has declared in the last 30 days: a stored job may name it.
type HandlerView struct {
	Name string `json:"name"`
	// Shape is the form of the payloads, as JSON: the name of a type of JSON, {"list": SHAPE},
	// {"map": SHAPE} or {"fields": {NAME: SHAPE}}; "" for any payload.
	Shape string `json:"shape"`
}

func listHandlers(ctx context.Context, c *conn) ([]HandlerView, error) {
	l, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	shapes, err := l.Handlers(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]HandlerView, 0, len(shapes))
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		views = append(views, HandlerView{name, shapes[name]})
	}
	return views, nil
}
