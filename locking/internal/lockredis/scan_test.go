package lockredis

import "testing"

func TestScan(t *testing.T) {
	var n int64
	var s string
	if !Scan([]any{int64(7), "x"}, &n, &s) || n != 7 || s != "x" {
		t.Errorf("got %d, %q; want 7 and x", n, s)
	}
	var f float64
	for name, fits := range map[string]bool{
		"too short":    Scan([]any{int64(7)}, &n, &s),
		"too long":     Scan([]any{int64(7), "x", "y"}, &n, &s),
		"another type": Scan([]any{"7", "x"}, &n, &s),
		"nil":          Scan([]any{int64(7), nil}, &n, &s),
		"a float":      Scan([]any{int64(7)}, &f),
	} {
		if fits {
			t.Errorf("%s: fits", name)
		}
	}
}
