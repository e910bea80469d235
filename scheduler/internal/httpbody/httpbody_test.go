package httpbody

import (
	"net/http"
	"testing"
)

func request(header string, values ...string) *http.Request {
	return &http.Request{Header: http.Header{header: values}}
}

func TestUnchanged(t *testing.T) {
	for value, want := range map[string]bool{
		`"a"`: true, `W/"a"`: true, `"b", "a"`: true, `"b",W/"a"`: true, `*`: true, `"b"`: false, `a`: false, ``: false,
	} {
		if Unchanged(request("If-None-Match", value), `"a"`) != want {
			t.Errorf("%s: want %t", value, want)
		}
	}
	if !Unchanged(request("If-None-Match", `"b"`, `"a"`), `"a"`) || Unchanged(request("Other"), `"a"`) {
		t.Error("two lines, or none")
	}
}

func TestTakesGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "GZIP": true, "*": true, "gzip; q=1": true,
		"": false, "br": false, "gzip;q=0": false, "gzip;q=0.000, br": false, "*;q=0": false, "identity": false, "*, gzip;q=0": false, "gzip;q=x": false,
	} {
		if TakesGzip(request("Accept-Encoding", value)) != want {
			t.Errorf("%q: want %t", value, want)
		}
	}
}
