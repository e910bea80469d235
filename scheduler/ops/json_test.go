package ops

import (
	"testing"
	"time"
)

// A page is written as the list of its items, and read again; what has no form in JSON is refused.
func TestEncodePage(t *testing.T) {
	t.Parallel()
	page := Page[TickView]{Items: []TickView{{Tick: time.UnixMilli(1_795_917_954_310).UTC()}}, Next: "more"}
	text, err := Encode(page)
	if err != nil || text[0] != '[' {
		t.Fatalf("%s, %v; want a list", text, err)
	}
	var back Page[TickView]
	if err := Decode(text, &back); err != nil || len(back.Items) != 1 || !back.Items[0].Tick.Equal(page.Items[0].Tick) {
		t.Errorf("read again: %+v, %v", back, err)
	}
	if text, err := Encode(struct{ Ticks []TickView }{page.Items}); err == nil {
		t.Errorf("a struct without tags is written as %s", text)
	}
}
