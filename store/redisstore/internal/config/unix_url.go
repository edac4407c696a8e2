package config

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// parseSocket parses the URL of a unix socket:
//
//	unix://user:password@/run/redis.sock?db=0&setting=value
func (t topology) parseSocket(raw string) ([]Address, url.Values, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Fragment != "" {
		return nil, nil, errors.New("redis: the URL of a unix socket cannot be parsed: write it like unix:///run/redis.sock, and escape special characters (@ is %40, / in a password is %2F)")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, fmt.Errorf("redis: the settings in the URL of %s cannot be parsed: write them like ?max_ttl=60s&node_timeout=50ms", u.Path)
	}
	switch {
	case u.Host != "" || u.Path == "" || u.Path == "/":
		// The host is not echoed: it may be half a password.
		return nil, nil, errors.New("redis: the URL of a unix socket has no path: write it with three slashes, as in unix:///run/redis.sock")
	case strings.ContainsAny(u.Path, ",>"): // which separate the nodes of a membership
		return nil, nil, fmt.Errorf("redis: the path of the unix socket %s contains a comma or a >: choose another path", u.Path)
	}
	a := Address{Host: path.Clean(u.Path), Username: u.User.Username()}
	a.Password, _ = u.User.Password()
	if db := query.Get("db"); db != "" {
		if a.db, err = strconv.Atoi(db); err != nil || a.db < 0 {
			return nil, nil, fmt.Errorf("redis: db=%q in the URL of %s is not the number of a database", db, u.Path)
		}
	}
	query.Del("db")
	return []Address{a}, query, nil
}
