package redisconn

import (
	"strings"
	"testing"
)

// FuzzMask looks for a text in which Mask, or an error of Parse, shows a password. The password stands between before and
// after, wherever that puts it.
func FuzzMask(f *testing.F) {
	const secret = "hunter2"
	for _, scheme := range []string{"redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "http", "REDIS", ""} {
		for _, between := range []string{"://", ":", ":/", "//", ":///", "://u:", "://u:p:", "://:", "://%", "://[::1]:1?x=", "://h/1?sentinel_password=", "://h/1?master_name=m&sentinel%5fpassword=",
			"://h/1?master_name=m&password=", "://h?ca_file=", "://h?read_timeout=1s&", "://a@b:", "://a,b:", "://h#", "://h/0#", "://h?"} {
			for _, after := range []string{"", "@h", "@h:1/0", "@h,i/0?master_name=m", "@/s?db=1", "%zz@h", "@@h", "/@h", "#@h", "?@h", " @h", "@h?master_name=m&sentinel_user=u", "&read_timeout=2s", ":6379/0"} {
				f.Add(scheme+between, after)
			}
		}
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		text := before + secret + after
		if strings.Count(text, secret) > 1 || strings.Contains(text, "_file=") { // a file is not looked at here
			return
		}
		shown := Mask(text)
		a, err := Parse(text)
		if err != nil {
			if shown != masked {
				t.Errorf("%q: Parse refuses it, Mask shows %s", text, shown)
			}
			if strings.Contains(text, "@") && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		var secrets []string
		switch {
		case a.Cluster != nil:
			secrets = []string{a.Cluster.Username, a.Cluster.Password}
		case a.Sentinel != nil:
			secrets = []string{a.Sentinel.Username, a.Sentinel.Password, a.Sentinel.SentinelPassword}
		default:
			secrets = []string{a.One.Username, a.One.Password}
		}
		if user, password := secrets[0], secrets[1]; user != "" && password != "" {
			secrets[0] = "" // a name
		}
		for _, s := range secrets {
			if strings.Contains(s, secret) && (strings.Contains(shown, secret) || strings.Contains(a.String(), secret)) {
				t.Errorf("%q: Mask shows %s, String %s", text, shown, a)
			}
		}
		if again := Mask(shown); again != shown {
			t.Errorf("%q: masked twice: %s, %s", text, shown, again)
		}
	})
}
