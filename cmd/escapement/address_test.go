package main

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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
		"10.0.0.1:6379/2":                   "has no scheme: write redis:// in front",
		"redis+clutser://a":                 "not one of redis, redis+cluster, redis+sentinel, rediss, rediss+cluster, rediss+sentinel, unix; did you mean redis+cluster",
		"http://a":                          "the scheme http is not one of redis, redis+cluster, redis+sentinel, rediss",
		"redis+cluster://":                  "names no server; write them behind the @ with commas",
		"redis+cluster://u:p@/0":            "names no server",
		"redis+cluster://a:1,":              "server 2 of 2 is not HOST:PORT",
		"redis+cluster://a:1,a:1":           "server 2 of 2 is given twice",
		"redis+cluster://a:x":               "server 1 of 1 is not HOST:PORT",
		"redis+cluster://a:1/3":             "names the database 3, and a Cluster has none but 0",
		"redis+cluster://a:1?db=1":          "names the database 1",
		"redis+cluster://a:1?max_retries=3": "the client's own retries stay off",
		"redis+cluster://a:1?nope=3":        "nope",
		"redis+cluster://u:p/q@a:1":         "percent-encode what is special in the password",
		"redis+cluster://u:p#q@a:1":         "percent-encode",
		"redis+sentinel://a":                "does not say what the sentinels call the master; add ?master_name=NAME",
		"redis+sentinel://a?master_name=":   "add ?master_name=NAME",
		"redis+sentinel://a?master_name=%":  "percent-encode",
	} {
		if _, err := addressOf(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestAddressesThatAreSame tells what is written alike from what is not.
func TestAddressesThatAreSame(t *testing.T) {
	all := []string{"redis://a", "redis://a/1", "redis://b", "redis+cluster://a", "redis+cluster://a,b", "redis+sentinel://a?master_name=x", "redis+sentinel://a/1?master_name=x"}
	for i, x := range all {
		for k, y := range all {
			a, err := addressOf(x)
			b, bad := addressOf(y)
			if err != nil || bad != nil || a.same(b) != (i == k) {
				t.Errorf("%s and %s: %v", x, y, a.same(b))
			}
		}
	}
}

// TestClusterTakesAllOfTheURL finds a setting that a URL can give and that gets lost on the way to a Cluster.
func TestClusterTakesAllOfTheURL(t *testing.T) {
	text := "rediss://u:p@/?protocol=2&client_name=c&min_retry_backoff=1s&max_retry_backoff=2s&dial_timeout=3s&read_timeout=4s&write_timeout=5s" +
		"&pool_fifo=true&pool_size=6&pool_timeout=7s&min_idle_conns=8&max_idle_conns=9&max_active_conns=10&max_concurrent_dials=4" +
		"&pipeline_pool_size=11&pipeline_read_buffer_size=12&pipeline_write_buffer_size=13" +
		"&conn_max_idle_time=14s&conn_max_lifetime=15s&conn_max_lifetime_jitter=1s&skip_verify=true"
	o, err := redisOptions(text)
	if err != nil {
		t.Fatal(err)
	}
	from, to := reflect.ValueOf(o).Elem(), reflect.ValueOf(clusterOf(o, nil)).Elem()
	seen := 0
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		if !from.Type().Field(i).IsExported() || from.Field(i).IsZero() || slices.Contains([]string{"Network", "Addr"}, name) {
			continue
		}
		seen++
		if got := to.FieldByName(name); !got.IsValid() || !reflect.DeepEqual(got.Interface(), from.Field(i).Interface()) {
			t.Errorf("%s is %v, and for the Cluster %v", name, from.Field(i), got)
		}
	}
	if seen < 25 {
		t.Errorf("only %d settings were looked at", seen)
	}
}

// TestPasswordsOfManyServersAreNotTold is TestPasswordsAreNotTold for URLs with several servers.
func TestPasswordsOfManyServersAreNotTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringMatching(`Zq[a-c@:/#?%\[\], &=]{0,6}Zq[@:/#?%&, ]{0,2}Zq`).Draw(t, "password")
		if rapid.Bool().Draw(t, "escaped") {
			password = url.PathEscape(password)
		}
		text := rapid.SampledFrom([]string{"redis+cluster://user:", "rediss+cluster://:", "redis+sentinel://u:", "redis+clustre://u:", "redis+cluster:u:", "redis+sentinel://h/0?master_name=m&sentinel_password="}).Draw(t, "before") +
			password + rapid.SampledFrom([]string{"@host:6379,b/", "@host", "@/0", "@host/zero", "@a,b?max_retries=2", "@a?master_name=x", "@a,a"}).Draw(t, "after")
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

// TestMaskedURLsReadBack wants what is printed to be a URL that is read again.
func TestMaskedURLsReadBack(t *testing.T) {
	for text, want := range map[string]string{
		"redis+cluster://u:p@a,b:2/?read_timeout=1s": "redis+cluster://u:xxxxx@a,b:2/?read_timeout=1s",
		"redis+cluster://a":                          "redis+cluster://a",
		"rediss+sentinel://:p@a/1?master_name=m":     "rediss+sentinel://:xxxxx@a/1?master_name=m",
		"redis+sentinel://p@a":                       masked,
		"redis+cluster://p@a":                        "redis+cluster://xxxxx@a", // who forgot the colon
		"redis+cluster://p:@a":                       "redis+cluster://xxxxx@a",
		"redis+cluster://@a":                         "redis+cluster://@a",
		"redis://p@a:1/2":                            "redis://xxxxx@a:1/2",
		"rediss://p:@a":                              "rediss://xxxxx@a",
		"redis://u:p@a":                              "redis://u:xxxxx@a",
		"redis://:p@a":                               "redis://:xxxxx@a",
		"unix://p@/s?db=1":                           "unix://xxxxx@/s?db=1",
		"redis+sentinel://a/1?sentinel_user=u&sentinel_password=p&master_name=m":     "redis+sentinel://a/1?master_name=m&sentinel_password=xxxxx&sentinel_user=u",
		"redis+sentinel://:p@a/1?master_name=m&max_retries=-1&sentinel%5Fpassword=p": "redis+sentinel://:xxxxx@a/1?master_name=m&max_retries=-1&sentinel_password=xxxxx",
		"redis+sentinel://a/1?sentinel_user=u&master_name=m":                         masked,
	} {
		if got := maskURL(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
