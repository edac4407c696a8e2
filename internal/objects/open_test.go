package objects

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// server is a driver that only writes.
type server func(version string) (string, error)

func (server) Node() string { return "the server" }

func (s server) Write(_ context.Context, _ string, _ []byte, version string, _ bool) (string, error) {
	return s(version)
}

// A server that heeds conditions is accepted, also if it answers a write with a conflict because
// another one is under way. Any other server is refused, with the condition.
func TestConditions(t *testing.T) {
	const absent, other = "0", "none"
	// sound is how many writes with the version that was sent end with a conflict, and ignored the
	// condition that the server does not know.
	try := func(sound int, ignored string) (first, again error) {
		version := 0
		d := server(func(v string) (string, error) {
			known := v == strconv.Itoa(version)
			if known && version > 0 && sound > 0 {
				sound--
				known = false
			}
			if !known && v != ignored {
				return "", recordstore.ErrConflict
			}
			version++
			return strconv.Itoa(version), nil
		})
		c := Conditions{IfAbsent: "If-None-Match", IfSame: "If-Match", Absent: absent, Other: other}
		return c.Try(t.Context(), d, ProbeKey), c.Try(t.Context(), d, ProbeKey)
	}
	for sound := range 4 {
		if first, again := try(sound, ""); first != nil || again != nil {
			t.Errorf("%d conflicts: %v, then %v, want none", sound, first, again)
		}
	}
	for _, c := range []struct {
		sound   int
		ignored string
		says    string
	}{
		{1 << 30, "", "refuses If-Match"},
		{0, absent, "does not heed If-None-Match"},
		{0, other, "does not heed If-Match"},
	} {
		if err, _ := try(c.sound, c.ignored); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want a refusal", c, err)
		}
	}
}

// What the options say is added to what the URL says, and must not contradict it.
func TestOptionsBesideTheURL(t *testing.T) {
	type options struct {
		Prefix, Endpoint    string
		Skew, Poll, Timeout time.Duration
		Logger              *slog.Logger

		bucket string
	}
	e := Engine[options, Driver]{
		Scheme: "test",
		Common: func(o *options) Common {
			return Common{Bucket: &o.bucket, Prefix: &o.Prefix, Endpoint: &o.Endpoint, Skew: &o.Skew, Poll: &o.Poll, Timeout: &o.Timeout, Logger: &o.Logger}
		},
		Complete: func(*options) error { return nil },
	}
	const url = "test://bbb?timeout=3s"
	if o, err := e.Options(url, &options{Skew: time.Minute, Timeout: 3 * time.Second}); err != nil || o.bucket != "bbb" || o.Skew != time.Minute || o.Timeout != 3*time.Second {
		t.Errorf("options beside the URL: %+v, %v", o, err)
	}
	if _, err := e.Options(url, &options{Timeout: time.Second}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("two timeouts: %v, want %v", err, store.ErrInvalid)
	}
}
