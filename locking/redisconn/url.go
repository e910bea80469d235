package redisconn

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// CallTimeout is the client's timeout to dial, to read and to write, unless the URL sets one.
const CallTimeout = time.Second

// timeoutMax bounds the timeouts that a URL may set.
const timeoutMax = 24 * time.Hour

var errPassword = errors.New(`cannot be read; write redis://USER:PASSWORD@HOST:6379/0 and percent-encode what is special in the password ("@" is %40, "/" is %2F, "#" is %23)`)

// options parses the URL of one server. Its errors hold no part of the URL that could be a
// password; the errors of url.Parse and redis.ParseURL may, when a password has special characters.
func options(text string) (*redis.Options, error) {
	u, err := url.Parse(text)
	if err != nil || strings.Contains(u.Path+u.RawQuery+u.Fragment+u.Opaque, "@") {
		return nil, errPassword
	}
	switch u.Scheme {
	case "redis", "rediss", "unix":
		if u.Opaque != "" || u.Fragment != "" {
			return nil, errPassword
		}
	default:
		return nil, errors.New("has no scheme; write redis://HOST:6379/0, rediss://HOST:6379/0 or unix:///PATH")
	}
	if port, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || port < 1 || port > 65535) {
		return nil, errors.New("has a port outside 1 to 65535") // not shown: it may be the beginning of a password
	}
	if n := u.Query().Get("max_retries"); n != "" && n != "-1" {
		return nil, errors.New("sets max_retries, and the client's own retries must stay off, because they hide lost replies; remove it")
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, errors.New("is wrong: " + strings.TrimPrefix(err.Error(), "redis: "))
	}
	if o.DB < 0 {
		return nil, errors.New("names the database " + strconv.Itoa(o.DB) + ", which is negative")
	}
	for name, d := range map[string]time.Duration{"dial_timeout": o.DialTimeout, "read_timeout": o.ReadTimeout, "write_timeout": o.WriteTimeout} {
		if d > timeoutMax || d < -1 { // a number that does not fit has become a negative one
			return nil, fmt.Errorf("has a %s outside 1ms to %s", name, timeoutMax)
		}
	}
	setRequired(o)
	return o, nil
}

// setRequired sets the options that Check requires, and the timeouts that the URL left out.
func setRequired(o *redis.Options) {
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	for _, timeout := range []*time.Duration{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout} {
		if *timeout == 0 {
			*timeout = CallTimeout
		}
	}
}
