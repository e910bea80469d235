package print

import (
	"bytes"
	"encoding/json"
	"testing"
)

// JSON on a terminal neither moves its cursor nor turns a text; every reader gets the same value.
func TestJSONIsHarmless(t *testing.T) {
	value := map[string]string{"note": "a\u009b31m\u202ered\u2066\x7f\x1b[2J é\u4e16 \n\ttab <b>"}
	var b bytes.Buffer
	if err := JSON(&b, value); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if unprinted(r) {
			t.Errorf("%U in %q", r, b.String())
		}
	}
	var back map[string]string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["note"] != value["note"] {
		t.Errorf("it came back as %q, %v", back["note"], err)
	}
	if want := "{\n  \"note\": \"a\\u009b31m\\u202ered\\u2066\\u007f\\u001b[2J é\u4e16 \\n\\ttab <b>\"\n}\n"; b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}
