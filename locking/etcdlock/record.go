package etcdlock

import (
	"encoding/json"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/escapement/escapement/locking"
)

// record is the value of a holder's key.
type record struct {
	Holder  string `json:"holder,omitempty"` // Options.Holder
	Offset  int64  `json:"offset"`           // the token is the key's create revision and this
	Revoked bool   `json:"revoked,omitempty"`
}

func (r record) encode() string {
	b, _ := json.Marshal(r) // plain fields: no error
	return string(b)
}

// readRecord reads the value of a key in the holder's range. Of a key of something else the token is the
// revision alone, so that an operator can take it over.
func readRecord(kv *mvccpb.KeyValue) (r record) {
	if json.Unmarshal(kv.Value, &r) != nil || r.Offset < 0 {
		return record{}
	}
	return r
}

// tokenOf returns the token of a holder's key.
func tokenOf(kv *mvccpb.KeyValue) locking.Token { return kv.CreateRevision + readRecord(kv).Offset }
