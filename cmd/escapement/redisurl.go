package main

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

// callTimeout bounds one exchange with Redis where the URL says nothing else.
const callTimeout = time.Second

var errPassword = errors.New(`cannot be read as a URL; write redis://USER:PASSWORD@HOST:6379/0 and percent-encode what is special in the password ("@" is %40, "/" is %2F, "#" is %23)`)

// redisOptions reads a URL into a client's options. Its errors never hold any
// part of the URL that could be a password: the messages of url.Parse and
// redis.ParseURL do, when a password has a special character in it.
func redisOptions(text string) (*redis.Options, error) {
	u, err := url.Parse(text)
	if err != nil || strings.Contains(u.Path+u.RawQuery+u.Fragment+u.Opaque, "@") {
		return nil, errPassword
	}
	schemes := []string{"redis", "rediss", "unix"}
	switch u.Scheme {
	case "redis", "rediss":
		if u.Opaque != "" || u.Fragment != "" {
			return nil, errPassword
		}
	case "unix":
	case "":
		return nil, errors.New("has no scheme; write redis://HOST:6379/0, rediss://HOST:6379/0 or unix:///PATH")
	default:
		return nil, fmt.Errorf("the scheme %s is not one of redis, rediss, unix%s", clip(u.Scheme), didYouMean(u.Scheme, schemes))
	}
	if port, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || port < 1 || port > 65535) {
		return nil, errors.New("has a port outside 1 to 65535") // not shown: it may be the beginning of a password
	}
	if n := u.Query().Get("max_retries"); n != "" && n != "-1" {
		return nil, errors.New("max_retries: the client's own retries stay off, a repeated request would not be told from a new one; remove it")
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "redis: "))
	}
	if o.DB < 0 {
		return nil, fmt.Errorf("the database number %d is negative", o.DB)
	}
	setClientRules(o)
	return o, nil
}

// setClientRules sets what the library asks of a client, and leaves the timeouts
// a URL gave.
func setClientRules(o *redis.Options) {
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	for _, timeout := range []*time.Duration{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout} {
		if *timeout == 0 {
			*timeout = callTimeout
		}
	}
}
