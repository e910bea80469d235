package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/escapement/escapement/locking/redisconn"
)

// TestRedisOptions wants a client that the library accepts, with the URL's own wishes kept.
func TestRedisOptions(t *testing.T) {
	for text, want := range map[string]string{
		"redis://u:p@h:1/2":                  "h:1",
		"redis://[::1]:5/0?read_timeout=3s":  "[::1]:5",
		"unix:///run/redis.sock?db=3":        "/run/redis.sock",
		"redis://u:" + "%40%2F%23%3F@h:1/0":  "h:1",
		"redis://:p%20p@h:1?client_name=esc": "h:1",
	} {
		o, err := redisOptions(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		client := redis.NewClient(o)
		if err := redisconn.Check(client); err != nil || o.Addr != want {
			t.Errorf("%s: %s, %v; want %s", text, o.Addr, err, want)
		}
		if want := map[bool]time.Duration{true: 3 * time.Second, false: callTimeout}[strings.Contains(text, "read_timeout")]; o.ReadTimeout != want {
			t.Errorf("%s: read timeout %v, want %v", text, o.ReadTimeout, want)
		}
		_ = client.Close()
	}
}

// TestPasswordsAreNotTold tries passwords full of what a URL gives a meaning to, escaped or not, for one server and for many, and
// looks for them in what is said and shown.
func TestPasswordsAreNotTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringMatching(`Zq[a-c@:/#?%\[\] &=]{0,6}Zq[@:/#?%& ]{0,2}Zq`).Draw(t, "password")
		password = rapid.SampledFrom([]string{"", "12/", "12?", "12#", "/"}).Draw(t, "port") + password // what is read as a port ends there
		if rapid.Bool().Draw(t, "escaped") {
			password = url.PathEscape(password)
		}
		text := rapid.SampledFrom([]string{"redis://user:", "rediss://:", "unix://u:", "http://u:", "redis:u:", "redis+cluster://user:", "rediss+cluster://:",
			"redis+sentinel://u:", "redis+clustre://u:", "redis+cluster:u:", "redis+sentinel://h/0?master_name=m&sentinel_password="}).Draw(t, "before") +
			password + rapid.SampledFrom([]string{"@host:6379/0", "@host", "@/socket", "@host/zero", "@host?max_retries=2", "@host?x=1", "@host:6379,b/", "@a?master_name=x", "@a,a"}).Draw(t, "after")
		said := quote(text)
		if a, err := addressOf(text); err != nil {
			said += err.Error()
		} else {
			said += maskURL(text) + a.name()
		}
		if strings.Contains(said, "Zq") {
			t.Errorf("%s: %s", text, said)
		}
	})
}
