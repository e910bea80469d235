package main

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
)

// TestAddressOf reads every form of a URL, and wants a client that the library accepts.
func TestAddressOf(t *testing.T) {
	for text, want := range map[string]string{
		"redis://u:p@h:1/2":                            "h:1",
		"unix:///run/redis.sock":                       "/run/redis.sock",
		"redis+cluster://u:p@a:1,b:2/":                 "the Cluster of a:1,b:2",
		"redis+cluster://a":                            "the Cluster of a:6379",
		"rediss+cluster://:p%40%2F@a,b:7000":           "the Cluster of a:6379,b:7000",
		"redis+cluster://[::1]:5,[::2]/0":              "the Cluster of [::1]:5,[::2]:6379",
		"redis+cluster://a:1?read_timeout=3s":          "the Cluster of a:1",
		"redis+sentinel://a,b:2/3?master_name=main":    "the master main of the sentinels a:26379,b:2",
		"rediss+sentinel://u:p@a/?db=4&master_name=m1": "the master m1 of the sentinels a:26379",
	} {
		a, err := addressOf(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		client := a.client()
		if err := redisconn.Check(client); err != nil || a.name() != want {
			t.Errorf("%s: %s, %v; want %s", text, a.name(), err, want)
		}
		_ = client.Close()
	}
	a, err := addressOf("rediss+cluster://u:p%40@a:1/?read_timeout=3s&pool_size=7")
	if o := a.cluster; err != nil || o.Username != "u" || o.Password != "p@" || o.ReadTimeout != 3*time.Second || o.PoolSize != 7 ||
		o.TLSConfig == nil || o.TLSConfig.ServerName != "" || o.MaxRetries != -1 || o.MaxRedirects != 0 {
		t.Errorf("%v, %+v", err, o)
	}
	a, err = addressOf("redis+sentinel://u:p@a/5?master_name=main&db=2&client_name=x")
	if o := a.sentinel; err != nil || o.Username != "u" || o.Password != "p" || o.ClientName != "x" || o.SentinelPassword != "" || o.DB != 5 && o.DB != 2 {
		t.Errorf("%v, %+v", err, o)
	}
}

// TestAddressFaults wants words about what is wrong, and which form is right.
func TestAddressFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "has no scheme",
		"localhost:6379":                    "has no scheme: write redis:// in front",
		"redis+clutser://a":                 "not one of redis, redis+cluster, redis+sentinel, rediss, rediss+cluster, rediss+sentinel, unix; did you mean redis+cluster",
		"redis://h:0":                       "port outside 1 to 65535",
		"rediss://u:p@h:65536/0":            "port outside 1 to 65535",
		"redis+cluster://":                  "names no server; write them behind the @ with commas",
		"redis+cluster://a:1,a:1":           "server 2 of 2 is given twice",
		"redis+cluster://a:x":               "server 1 of 1 is not HOST:PORT",
		"redis+cluster://a:1/3":             "names the database 3, and a Cluster has none but 0",
		"redis+cluster://a:1?max_retries=3": "the client's own retries stay off",
		"redis+cluster://a:1?nope=3":        "nope",
		"redis+cluster://u:p/q@a:1":         "percent-encode what is special in the password",
		"redis+sentinel://a":                "does not say what the sentinels call the master; add ?master_name=NAME",
	} {
		if _, err := addressOf(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestMaskedURLsReadBack wants what is printed to be a URL that is read again.
func TestMaskedURLsReadBack(t *testing.T) {
	for text, want := range map[string]string{
		"redis+cluster://u:p@a,b:2/?read_timeout=1s": "redis+cluster://u:xxxxx@a,b:2/?read_timeout=1s",
		"rediss+sentinel://:p@a/1?master_name=m":     "rediss+sentinel://:xxxxx@a/1?master_name=m",
		"redis+sentinel://p@a":                       masked,
		"redis+cluster://p@a":                        "redis+cluster://xxxxx@a", // who forgot the colon
		"redis://p@a:1/2":                            "redis://xxxxx@a:1/2",
		"redis://:p@a":                               "redis://:xxxxx@a",
		"unix://p@/s?db=1":                           "unix://xxxxx@/s?db=1",
		"redis+sentinel://a/1?sentinel_user=u&sentinel_password=p&master_name=m":     "redis+sentinel://a/1?master_name=m&sentinel_password=xxxxx&sentinel_user=u",
		"redis+sentinel://:p@a/1?master_name=m&max_retries=-1&sentinel%5Fpassword=p": "redis+sentinel://:xxxxx@a/1?master_name=m&max_retries=-1&sentinel_password=xxxxx",
	} {
		if got := maskURL(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
