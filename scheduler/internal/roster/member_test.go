package roster

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/sharding"

	"github.com/redis/go-redis/v9"
)

// foreign are records that this version cannot read, by the ID they lie under.
var unknownFormat = map[string]string{
	"newer":       `{"v":2,"id":"newer","state":"active"}`,
	"shape":       `{"v":2,"id":{"uuid":"shape"}}`,
	"broken":      `{"v":1,"id":"bro`,
	"empty":       ``,
	"null":        `null`,
	"list":        `[1,2]`,
	"unnumber":    `{"v":"1","id":"unnumber"}`,
	"versionless": `{"id":"versionless","state":"active"}`,
	"renamed":     `{"v":1,"id":"someone-else","state":"active"}`,
	"overflow":    `{"v":1,"id":"overflow","weight":1e99}`,
	"binary":      "\x00\xff\r\n",
	"large":       `{"v":1,"id":"large","name":"` + strings.Repeat("x", MaxRecord) + `"}`,
}

func TestForeignRecordsAreLeftAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		r := New(client, Config{TTL: time.Hour})
		beat(t, r, "a")
		// A record of this version with a field that it does not know is read.
		must(client.HSet(ctx, r.keys.roster, "b", `{"v":1,"id":"b","state":"active","colour":"red"}`).Result())(t)
		names := make([]string, 0, len(unknownFormat))
		for id, raw := range unknownFormat {
			must(client.HSet(ctx, r.keys.roster, id, raw).Result())(t)
			names = append(names, id)
		}
		// The first beat finds records without a time, and gives them one.
		for range 3 {
			v := beat(t, r, "a")
			wantMembers(t, v, "a", "b")
			if v.UnknownFormat != len(unknownFormat) {
				t.Errorf("%d foreign records, want %d", v.UnknownFormat, len(unknownFormat))
			}
		}
		if n := client.ZCard(ctx, r.keys.seen).Val(); n != int64(len(unknownFormat))+2 {
			t.Errorf("%d records have a time, want all %d", n, len(unknownFormat)+2)
		}
		for id, raw := range unknownFormat {
			if got := client.HGet(ctx, r.keys.roster, id).Val(); got != raw {
				t.Errorf("%s became %.80q", id, got)
			}
		}
		if v := must(r.Look(ctx))(t); v.UnknownFormat != len(unknownFormat) || len(v.Members) != 2 {
			t.Errorf("Look: %d foreign, %d members; want %d and 2", v.UnknownFormat, len(v.Members), len(unknownFormat))
		}
		age(t, client, r.keys.seen, time.Hour, names...)
		if v := beat(t, r, "a"); v.UnknownFormat != 0 {
			t.Errorf("%d foreign records outlived their time", v.UnknownFormat)
		}
		if n := client.HLen(ctx, r.keys.roster).Val(); n != 2 {
			t.Errorf("%d records are left, want 2", n)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for id, raw := range unknownFormat {
		f.Add(id, raw)
	}
	f.Add("a", `{"v":1,"id":"a","state":"active","labels":{"zone":"a"}}`)
	f.Add("4f53cda18c2baa0c", `{"v":1,"jobs":{"a":"b"}}`)
	f.Fuzz(func(t *testing.T, id, raw string) {
		if m, ok := decodeMember(row{id: id, raw: raw}); ok {
			if m.ID != id {
				t.Errorf("read %q from the field %q", m.ID, id)
			}
			sharding.Rank("job", []sharding.Node{m.Node, {ID: "other"}})
		}
		if jobs, err := decodeSet(id, raw); err == nil && jobs != nil && SetDigest(jobs) != id {
			t.Errorf("set %q has digest %s", id, SetDigest(jobs))
		}
	})
}
