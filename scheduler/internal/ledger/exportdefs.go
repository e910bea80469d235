package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// definitions gives all that are stored, current or not.
func (x *export) definitions() error {
	for _, digest := range slices.Sorted(maps.Keys(x.store.defs.Val())) {
		var of struct{ Name string }
		def := x.store.defs.Val()[digest]
		if err := json.Unmarshal([]byte(def), &of); err != nil || of.Name == "" {
			x.leave(x.keys.defs, "", "definition", fmt.Errorf("definition %s names no job", digest))
			continue
		}
		if err := x.put(Piece{kind: pieceDef, job: of.Name, name: digest, value: def}); err != nil {
			return err
		}
	}
	return nil
}

// announced gives which definitions nodes held lately, each by itself: the chunks of another number of partitions are others.
func (x *export) announced(ctx context.Context) error {
	all, err := x.l.announcedIn(ctx, x.part)
	if err != nil {
		return err
	}
	for _, a := range all {
		p := Piece{kind: pieceAnnounced, job: a.Job, name: a.Digest, value: a.Generation + "|" + a.Revision + "|" + ms(a.Since), score: float64(a.seen)}
		if err := x.put(p); err != nil {
			return err
		}
	}
	return nil
}
