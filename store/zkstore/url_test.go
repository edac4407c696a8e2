package zkstore

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func TestParseURL(t *testing.T) {
	for raw, want := range map[string]Options{
		"zookeeper://a":              {servers: []string{"a"}},
		"zookeeper://a:1,b/app/lock": {servers: []string{"a:1", "b"}, Base: "/app/lock"},
		"zookeeper://u:p%40%3a:x@a,[::1]:2182/?tick=4s&max_ttl=20s&reader=world:anyone&reader=digest:o:h%3D": {
			servers: []string{"a", "[::1]:2182"}, Auth: []Identity{{"digest", "u:p@::x"}}, Tick: 4 * time.Second, MaxTTL: 20 * time.Second,
			Readers: []Identity{{"world", "anyone"}, {"digest", "o:h="}},
		},
	} {
		want, _ := want.checked()
		o, err := parseURL(raw, nil)
		o.Logger = want.Logger
		if err != nil || !reflect.DeepEqual(o, want) {
			t.Errorf("%s: %+v, %v, want %+v", raw, o, err, want)
		}
	}
	for _, raw := range []string{
		"", "zookeeper:", "zookeeper://", "zookeeper://,a", "zookeeper://secret@a", "zookeeper://:secret@a", "zookeeper://u:secret%zz@a",
		"zookeeper://a/b//c", "zookeeper://a/..", "zookeeper://a/b%20c", "zookeeper://a?tick=secret", "zookeeper://a?max_ttl=-1s", "zookeeper://a?reader=x",
		"zookeeper://a?base=x", "zookeeper://a#secret", "zookeeper://a zookeeper://b", "http://a",
	} {
		if _, err := parseURL(raw, nil); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "secret%") {
			t.Errorf("%q: %v, want %v and no %q", raw, err, store.ErrInvalid, "secret%")
		}
	}
}

func TestAddresses(t *testing.T) {
	o, err := (&Options{servers: []string{"a", "b:1", "[::1]", "::1", "[::1]:3"}}).checked()
	want := []string{"a:2181", "b:1", "[::1]:2181", "[::1]:2181", "[::1]:3"}
	if err != nil || !reflect.DeepEqual(o.servers, want) {
		t.Errorf("%q, %v, want %q", o.servers, err, want)
	}
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"3.4.14": true, "3.5.0": true, "3.5.1": false, "3.5.10": false, "3.8.0": false, "4.0.0": false, "3.10.0": false, "": false, "3.5": false, "new": false,
	} {
		if got := TooOld(version); got != want {
			t.Errorf("%q is too old: %v, want %v", version, got, want)
		}
	}
}
