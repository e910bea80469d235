package config

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redisconn"
)

// TestSentinelOptions expects a client that the library accepts, with the master's settings from
// the URL.
func TestSentinelOptions(t *testing.T) {
	r := Redis{Mode: modeSentinel, Addrs: []string{"10.0.0.1:26379"}, MasterName: "main"}
	for text, want := range map[string]redis.FailoverOptions{
		"":                             {},
		"redis://u:p@/2":               {Username: "u", Password: "p", DB: 2},
		"redis://:p%40@?db=3":          {Password: "p@", DB: 3},
		"rediss:///1?read_timeout=3s":  {DB: 1, ReadTimeout: 3 * time.Second},
		"rediss://:p@/0?skip_verify=1": {Password: "p"},
	} {
		r.URL = text
		a, err := r.several()
		o := a.Sentinel
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if o.Username != want.Username || o.Password != want.Password || o.DB != want.DB || o.PoolSize != want.PoolSize || o.ClientName != want.ClientName {
			t.Errorf("%s: got %+v", text, o)
		}
		if o.SentinelPassword != "" || o.SentinelUsername != "" {
			t.Errorf("%s: the master's password is told to the sentinels", text)
		}
		if tls := strings.HasPrefix(text, "rediss"); tls != (o.TLSConfig != nil) || tls && o.TLSConfig.ServerName != "" {
			t.Errorf("%s: TLS %+v", text, o.TLSConfig)
		}
		if o.DialTimeout != max(redisconn.CallTimeout, want.DialTimeout) || o.ReadTimeout != max(redisconn.CallTimeout, want.ReadTimeout) || o.WriteTimeout != redisconn.CallTimeout {
			t.Errorf("%s: timeouts %s, %s, %s", text, o.DialTimeout, o.ReadTimeout, o.WriteTimeout)
		}
		client := redis.NewFailoverClient(o)
		if err := redisconn.Check(client); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		_ = client.Close()
	}
}

// TestSentinelPasswordIsForSentinels expects a fault for a password that is not used.
func TestSentinelPasswordIsForSentinels(t *testing.T) {
	for text, want := range map[string]string{
		"redis: {url: \"redis://h\", sentinel_password: hunter2}":                                            "redis.sentinel_password: is for sentinels, and none are asked with redis.mode: standalone",
		"redis: {mode: cluster, addrs: [\"h:1\"], sentinel_password: hunter2}":                               "redis.sentinel_password: is for sentinels, and none are asked with redis.mode: cluster",
		"redis: {mode: sentinel, addrs: [\"h:1\"], master_name: m, sentinel_user: u}":                        "redis.sentinel_user: has no password; set redis.sentinel_password too",
		"redis: {mode: sentinel, addrs: [\"h:1\"], master_name: m, sentinel_user: u, sentinel_password: pw}": "",
		"redis: {url: \"redis+sentinel://h:1/0?master_name=m\", sentinel_user: u, sentinel_password: pw}":    "",
	} {
		l, err := Load(Source{File: testkit.Write(t, text)})
		if want == "" {
			a, none := l.Address()
			if err != nil || none != nil || a.Sentinel.SentinelUsername != "u" || a.Sentinel.SentinelPassword != "pw" || a.Sentinel.Password != "" {
				t.Errorf("%s: %v, %v", text, err, none)
			}
			var out strings.Builder
			if err := Print(&out, &l.Config); err != nil || !strings.Contains(out.String(), "sentinel_password: '***'") {
				t.Errorf("%s: printed as %s, %v", text, out.String(), err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
