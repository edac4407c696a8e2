package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

func TestURLs(t *testing.T) {
	for _, c := range []struct {
		urls  string // separated by spaces
		hosts string
		check func(redisstore.Options) bool
	}{
		{urls: "redis://a", hosts: "a:6379"},
		{urls: "redis://a:1,b:2,c:3", hosts: "a:1 b:2 c:3"},
		{urls: "redis://a redis://b:2 rediss://c", hosts: "a:6379 b:2 c:6379"},
		{urls: "redis://[::1],[::2]:7/3", hosts: "[::1]:6379 [::2]:7"},
		{urls: "redis://user:p%40ss%2Fw@a,b/2?max_ttl=90s&node_timeout=50ms", hosts: "a:6379 b:6379",
			check: func(o redisstore.Options) bool {
				return o.MaxTTL == 90*time.Second && o.NodeTimeout == 50*time.Millisecond
			}},
		{urls: "redis-sentinel://a?master=m&barge=true", hosts: "a:26379",
			check: func(o redisstore.Options) bool { return o.Barge }},
		{urls: "unix:///run/redis.sock", hosts: "/run/redis.sock"},
		{urls: "unix://user:p%2Fw@/run/redis.sock?db=2&max_ttl=90s redis://a", hosts: "/run/redis.sock a:6379",
			check: func(o redisstore.Options) bool { return o.MaxTTL == 90*time.Second }},
		{urls: "redis-sentinel://u:p@a,b:2/1?master=m", hosts: "a:26379 b:2",
			check: func(o redisstore.Options) bool { return o.Master == "m" }},
		{urls: "rediss-sentinel://a?master=m&sentinel_username=su&sentinel_password=sp&max_ttl=9s", hosts: "a:26379",
			check: func(o redisstore.Options) bool {
				return o.SentinelUsername == "su" && o.SentinelPassword == "sp" && o.MaxTTL == 9*time.Second
			}},
		{urls: "redis://a?connect_timeout=3s redis://b?connect_timeout=3s", hosts: "a:6379 b:6379",
			check: func(o redisstore.Options) bool { return o.ConnectTimeout == 3*time.Second }},
	} {
		hosts, o, err := redisstore.ParseURLs(c.urls, redisstore.Options{})
		if err != nil || !slices.Equal(hosts, strings.Fields(c.hosts)) || c.check != nil && !c.check(o) {
			t.Errorf("%s: %v, %+v, %v, want the hosts %s and the settings of the URL", c.urls, hosts, o, err, c.hosts)
		}
	}
}

// Every error says what is wrong, and none shows a password.
func TestBadURLs(t *testing.T) {
	const secret = "hunter2"
	for urls, say := range map[string]string{
		"":                      "no nodes",
		"http://a":              "redis://",
		"hunter2":               "redis://",
		"redis://":              "no host",
		"redis://a,,b":          "no host",
		"unix://run/redis.sock": "three slashes",
		"unix://":               "three slashes",
		"unix:///a,b":           "comma",
		"unix:///a?db=x":        "number of a database",
		"unix:///a unix:///a":   "twice",
		"unix://hunter2":        "three slashes",
		"redis://a:99999":       "host:port",
		"redis://a:x":           "host:port",
		"redis://::1":           "[::1]",
		"redis://a/x":           "number of a database",
		"redis://a/-1":          "number of a database",
		"redis://a,a:6379":      "twice",
		"redis://a?ttl=3s":      "unknown setting",
		"redis://a?max_ttl=3":   "duration",
		"redis://a?barge=no":    "only value is true",
		"redis://a?max_ttl=-3s": "duration",
		"redis://a?max_ttl=1s redis://b?max_ttl=2s":                                 "twice",
		"redis://u:hunter2/x@a":                                                     "escape",
		"redis://u:hunter2#@a":                                                      "escape",
		"redis://u:hunter2":                                                         "host:port",
		"redis://u:hunter2?x@a":                                                     "host:port",
		"redis://u:hunter2%zz@a":                                                    "escape",
		"rediss://a?tls_cert=x":                                                     "go together",
		"rediss://a?tls_ca=/no/such/file":                                           "tls_ca",
		"redis://a?node_timeout=2m":                                                 "max",
		"redis-sentinel://a":                                                        "master=",
		"redis-sentinel://a?master=":                                                "master=",
		"redis-sentinel://a?master=m&next=b":                                        "does not go with redis-sentinel",
		"redis-sentinel://a?master=m&fsync=always":                                  "does not go with redis-sentinel",
		"redis-sentinel://a?master=m&ttl=3s":                                        "max_ttl, node_timeout, sentinel_password",
		"redis://a?master=m":                                                        "unknown setting",
		"redis://a?sentinel_password=hunter2":                                       "unknown setting",
		"redis-sentinel://a?master=m&sentinel_username=x":                           "no password",
		"redis-sentinel://a?master=m redis://b":                                     "cannot be combined",
		"redis://b redis-sentinel://a?master=m":                                     "cannot be combined",
		"redis-sentinel://x:hunter2@a?master=m redis-sentinel://b":                  "differ in user",
		"redis-sentinel://a?master=m redis-sentinel://b?master=n":                   "twice",
		"redis-sentinel://x:hunter2@a:b:c?master=m":                                 "host:port",
		"redis-sentinel://a?master=m&sentinel_password=hunter2&sentinel_password=x": "twice",
		"redis://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17":                         "more than",
	} {
		addrs, o, err := redisstore.ParseURLs(urls, redisstore.Options{})
		if err == nil {
			_, err = redisstore.Settle(o)
		}
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v %v, want an error with %q", urls, addrs, err, say)
		} else if strings.Contains(err.Error(), secret) && urls != secret {
			t.Errorf("%q: %v shows the password", urls, err)
		}
	}
}

// Settings of sentinels are refused for other servers. A URL that contradicts the options is
// refused, and the error does not show it.
func TestSettingsOfSentinels(t *testing.T) {
	for urls, o := range map[string]redisstore.Options{
		"redis-sentinel://a?master=m&sentinel_password=hunter2": {SentinelPassword: "hunter3"},
		"redis-sentinel://a?master=m":                           {Next: []string{"b"}},
		"redis-sentinel://b?master=m":                           {FsyncAlways: true},
		"redis://a?bogus=1":                                     {},
		"redis://a":                                             {Master: "m"},
	} {
		_, _, err := redisstore.ParseURLs(urls, o)
		if !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hunter") || strings.HasPrefix(urls, "redis://a?") && strings.Contains(err.Error(), "sentinel") {
			t.Errorf("%s: %v, want %v without a password", urls, err, store.ErrInvalid)
		}
	}
}

func FuzzURLs(f *testing.F) {
	for _, s := range []string{"redis://a", "redis-sentinel://u:p@a,b/1?master=m&sentinel_password=x", "redis://u:p@a:1,b/0?max_ttl=1s", "rediss://[::1]:7", "redis://@,:?#", "redis://0?0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hosts, _, err := redisstore.ParseURLs(s, redisstore.Options{})
		if (err == nil) != (len(hosts) > 0) {
			t.Errorf("%q: hosts %q, %v, want either hosts or an error", s, hosts, err)
		}
	})
}

func FuzzDecodeValue(f *testing.F) {
	for _, s := range []string{"", "owner", "owner 7", strings.Repeat("é", 99), `owner {"host":"h","pid":1,"since":2}`, "owner {", "\x00 \xff", " {}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h := redisstore.DecodeValue(s)
		if h.Owner == "" || len(h.Owner) > store.MaxOwner || !h.Foreign && !strings.HasPrefix(s, h.Owner) {
			t.Errorf("%q is read as the owner %q, want a valid one", s, h.Owner)
		}
		if text := h.String(); strings.ContainsAny(text, "\x00\x1b\n\r\u009b") {
			t.Errorf("%q is printed as %q, with control characters", s, text)
		}
	})
}
