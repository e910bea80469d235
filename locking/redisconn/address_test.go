package redisconn

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// TestOneServer wants a client that the library accepts, with the options of the URL.
func TestOneServer(t *testing.T) {
	for text, want := range map[string]string{
		"redis://u:p@h:1/2":                  "h:1",
		"redis://[::1]:5/0?read_timeout=3s":  "[::1]:5",
		"unix:///run/redis.sock?db=3":        "/run/redis.sock",
		"redis://u:" + "%40%2F%23%3F@h:1/0":  "h:1",
		"redis://:p%20p@h:1?client_name=esc": "h:1",
	} {
		o, err := options(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		client := redis.NewClient(o)
		if err := Check(client); err != nil || o.Addr != want {
			t.Errorf("%s: %s, %v; want %s", text, o.Addr, err, want)
		}
		if want := map[bool]time.Duration{true: 3 * time.Second, false: CallTimeout}[strings.Contains(text, "read_timeout")]; o.ReadTimeout != want {
			t.Errorf("%s: read timeout %v, want %v", text, o.ReadTimeout, want)
		}
		_ = client.Close()
	}
}

// TestPasswordsStaySecret tries passwords with the special characters of a URL, escaped or not, for
// one server and for many, and looks for the passwords in errors and printed addresses.
func TestPasswordsStaySecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringMatching(`Zq[a-c@:/#?%\[\] &=]{0,6}Zq[@:/#?%& ]{0,2}Zq`).Draw(t, "password")
		password = rapid.SampledFrom([]string{"", "12/", "12?", "12#", "/"}).Draw(t, "port") + password // a text that is read as a port ends there
		if rapid.Bool().Draw(t, "escaped") {
			password = url.PathEscape(password)
		}
		text := rapid.SampledFrom([]string{"redis://user:", "rediss://:", "unix://u:", "http://u:", "redis:u:", "redis+cluster://user:", "rediss+cluster://:",
			"redis+sentinel://u:", "redis+clustre://u:", "redis+cluster:u:", "redis+sentinel://h/0?master_name=m&sentinel_password="}).Draw(t, "before") +
			password + rapid.SampledFrom([]string{"@host:6379/0", "@host", "@/socket", "@host/zero", "@host?max_retries=2", "@host?x=1", "@host:6379,b/", "@a?master_name=x", "@a,a"}).Draw(t, "after")
		said := ""
		if a, err := Parse(text); err != nil {
			said += err.Error()
		} else {
			said += Mask(text) + a.String()
		}
		if strings.Contains(said, "Zq") {
			t.Errorf("%s: %s", text, said)
		}
	})
}

// TestParse reads every form of a URL, and wants a client that the library accepts.
func TestParse(t *testing.T) {
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
		"redis+sentinel://a,b:2/main/3":                "the master main of the sentinels a:26379,b:2",
		"redis+sentinel://a/main":                      "the master main of the sentinels a:26379",
	} {
		a, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		client := a.Client()
		if err := Check(client); err != nil || a.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, a.String(), err, want)
		}
		_ = client.Close()
	}
	a, err := Parse("rediss+cluster://u:p%40@a:1/?read_timeout=3s&pool_size=7")
	if o := a.Cluster; err != nil || o.Username != "u" || o.Password != "p@" || o.ReadTimeout != 3*time.Second || o.PoolSize != 7 ||
		o.TLSConfig == nil || o.TLSConfig.ServerName != "" || o.MaxRetries != -1 || o.MaxRedirects != 0 {
		t.Errorf("%v, %+v", err, o)
	}
	if a, err := Parse("redis+sentinel://u:p@a/main/5"); err != nil || a.Sentinel.MasterName != "main" || a.Sentinel.DB != 5 {
		t.Errorf("%v, %+v", err, a.Sentinel)
	}
	a, err = Parse("redis+sentinel://u:p@a/5?master_name=main&db=2&client_name=x")
	if o := a.Sentinel; err != nil || o.Username != "u" || o.Password != "p" || o.ClientName != "x" || o.SentinelPassword != "" || o.DB != 5 && o.DB != 2 {
		t.Errorf("%v, %+v", err, o)
	}
}

// TestParseFaults wants an error with the fault and the cure.
func TestParseFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "is empty",
		"localhost:6379":                    "has no scheme: write redis:// in front",
		"redis+clutser://a":                 "not one of redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster",
		"redis://h:0":                       "port outside 1 to 65535",
		"rediss://u:p@h:65536/0":            "port outside 1 to 65535",
		"redis+cluster://":                  "names no server; write them after the @ with commas",
		"redis+cluster://a:1,a:1":           "names server 2 of 2 twice",
		"redis+cluster://a:x":               "server 1 of 1 is not HOST:PORT",
		"redis+cluster://a:1/3":             "names the database 3, and a Cluster has none but 0",
		"redis+cluster://a:1?max_retries=3": "the client's own retries must stay off",
		"redis+cluster://a:1?nope=3":        "nope",
		"redis+cluster://u:p/q@a:1":         "percent-encode what is special in the password",
		"redis+sentinel://a":                "has no name of the master; add ?master_name=NAME",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestMaskedURLsReadBack wants the printed text to be a URL that Parse accepts.
func TestMaskedURLsReadBack(t *testing.T) {
	for text, want := range map[string]string{
		"redis+cluster://u:p@a,b:2/?read_timeout=1s": "redis+cluster://u:xxxxx@a,b:2/?read_timeout=1s",
		"rediss+sentinel://:p@a/1?master_name=m":     "rediss+sentinel://:xxxxx@a/1?master_name=m",
		"redis+sentinel://p@a":                       masked,
		"redis+cluster://p@a":                        "redis+cluster://xxxxx@a", // who forgot the colon
		"redis://p@a:1/2":                            "redis://xxxxx@a:1/2",
		"redis://:p@a":                               "redis://:xxxxx@a",
		"unix://p@/s?db=1":                           "unix://xxxxx@/s?db=1",
		"":                                           "",
		"redis+sentinel://a/1?sentinel_user=u&sentinel_password=p&master_name=m":     "redis+sentinel://a/1?master_name=m&sentinel_password=xxxxx&sentinel_user=u",
		"redis+sentinel://:p@a/1?master_name=m&max_retries=-1&sentinel%5Fpassword=p": "redis+sentinel://:xxxxx@a/1?master_name=m&max_retries=-1&sentinel_password=xxxxx",
	} {
		if got := Mask(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// TestMaskKeepsPasswords: a text that Parse refuses may be a password in any place.
func TestMaskKeepsPasswords(t *testing.T) {
	for _, text := range []string{
		"A:hunter2@", "hunter2@host:6379", "hunter2", ":hunter2@host", "redis:hunter2@host", "redis:/u:hunter2@host", "redis//:hunter2@host", "REDIS://:hunter2@h",
		"redis://:hunter2@h#x", "redis://:hunter2#@h", "redis://h/0#hunter2", "redis://h?password=hunter2", "redis://h/hunter2", "redis://h:hunter2/0",
		"unix://:hunter2@/s#hunter2", "unix:hunter2@/s", "unix:///s#hunter2", "unix:///s?password=hunter2", "http://:hunter2@h", "tcp://hunter2@h",
		"redis+cluster://:hunter2@h/#hunter2", "redis+cluster:hunter2@h", "redis+sentinel://:hunter2@h", "redis+sentinel://h/0?master_name=m&sentinel_password=hunter2",
		"redis+sentinel://h/0?master_name=m&password=hunter2", "rediss://:hunter2@h/0?ca_file=/f&x=hunter2", "rediss://u:hunter2@h?ca_file=/f", "\x00hunter2",
	} {
		if got := Mask(text); strings.Contains(got, "hunter2") {
			t.Errorf("%q: %s", text, got)
		}
	}
	if got := Mask("rediss://u:p@h/0?ca_file=/f&read_timeout=2s"); got != "rediss://u:xxxxx@h/0?ca_file=/f&read_timeout=2s" {
		t.Errorf("got %s", got)
	}
}

// TestAllOfTheURLCounts finds an option of a URL that a Cluster, or the master of sentinels, does not get.
func TestAllOfTheURLCounts(t *testing.T) {
	o, err := options("rediss://u:p@/?protocol=2&client_name=c&min_retry_backoff=1s&max_retry_backoff=2s&dial_timeout=3s&read_timeout=4s&write_timeout=5s" +
		"&pool_fifo=true&pool_size=6&pool_timeout=7s&min_idle_conns=8&max_idle_conns=9&max_active_conns=10&max_concurrent_dials=4" +
		"&pipeline_pool_size=11&pipeline_read_buffer_size=12&pipeline_write_buffer_size=13" +
		"&conn_max_idle_time=14s&conn_max_lifetime=15s&conn_max_lifetime_jitter=1s&skip_verify=true")
	if err != nil {
		t.Fatal(err)
	}
	from := reflect.ValueOf(o).Elem()
	for _, to := range []any{clusterOptions(o, nil), sentinelOptions(o)} {
		seen := 0
		for i := range from.NumField() {
			name := from.Type().Field(i).Name
			if !from.Type().Field(i).IsExported() || from.Field(i).IsZero() || slices.Contains([]string{"Network", "Addr", "MaintNotificationsConfig"}, name) {
				continue
			}
			seen++
			if got := reflect.ValueOf(to).Elem().FieldByName(name); !got.IsValid() || !reflect.DeepEqual(got.Interface(), from.Field(i).Interface()) {
				t.Errorf("%T: %s is %v, and in the URL %v", to, name, got, from.Field(i))
			}
		}
		if seen < 24 {
			t.Errorf("only %d settings were looked at", seen)
		}
	}
}
