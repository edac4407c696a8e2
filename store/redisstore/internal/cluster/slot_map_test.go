package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A member's report of the slots is read in full, or refused.
func TestSlotMap(t *testing.T) {
	const (
		plain    = "*3\r\n:0\r\n:5\r\n*3\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n"
		named    = "*4\r\n:6\r\n:6\r\n*4\r\n$1\r\nh\r\n:7001\r\n$2\r\nid\r\n%1\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n*3\r\n$1\r\nr\r\n:7002\r\n$2\r\nid\r\n"
		nameless = "*3\r\n:7\r\n:16383\r\n*3\r\n_\r\n:7003\r\n$2\r\nid\r\n"
		unnamed  = "*3\r\n:8\r\n:8\r\n*3\r\n$1\r\n?\r\n:7004\r\n$2\r\nid\r\n"
	)
	for said, want := range map[string][]Range{
		"*1\r\n" + plain: {{0, 5, "127.0.0.1:7000"}},
		"*4\r\n" + plain + named + nameless + unnamed: {{0, 5, "127.0.0.1:7000"}, {6, 6, "h:7001"}, {7, 16383, "10.0.0.9:7003"}},
		"*0\r\n":                   nil,
		"-ERR no\r\n":              nil,
		"*1\r\n*2\r\n:0\r\n:5\r\n": nil,
		"*1\r\n" + strings.Replace(plain, ":5", ":16384", 1):  nil,
		"*1\r\n" + strings.Replace(plain, ":0", ":6", 1):      nil,
		"*1\r\n" + strings.Replace(plain, ":0", "$1\r\n0", 1): nil,
		"$2\r\nno\r\n": nil,
	} {
		in := resp.NewReader(strings.NewReader(said))
		v, err := in.Next()
		if err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		got, err := ParseSlotMap(v, "10.0.0.9:7009")
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v; want %v", said, got, err, want)
		}
	}
}

// The slot map of a cluster with a range for each slot can be read.
func TestScatteredSlotMap(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", resp.Slots)
	for i := range resp.Slots {
		server := fmt.Sprintf("*4\r\n$9\r\n127.0.0.1\r\n:%d\r\n$2\r\nid\r\n*0\r\n", 7000+i%3)
		fmt.Fprintf(&b, "*4\r\n:%d\r\n:%d\r\n%s%s", i, i, server, server)
	}
	in := resp.NewReader(bufio.NewReader(strings.NewReader(b.String())))
	v, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	if slotMap, err := ParseSlotMap(v, "a:1"); err != nil || len(slotMap) != resp.Slots {
		t.Errorf("read %d ranges, %v, want %d", len(slotMap), err, resp.Slots)
	}
}

// A member that does not serve a request replies with one of these redirections.
func TestRedirections(t *testing.T) {
	for reply, want := range map[string]struct {
		kind resp.RedirectionKind
		host string
		as   store.Outcome
	}{
		"MOVED 3999 127.0.0.1:6381": {resp.RedirectMoved, "127.0.0.1:6381", store.Refused},
		"MOVED 3999 :6381":          {resp.RedirectMoved, "asked:6381", store.Refused},
		"MOVED 3999 ::1:6381":       {resp.RedirectMoved, "[::1]:6381", store.Refused},
		"ASK 1 host:6381":           {resp.RedirectAsk, "host:6381", store.Unsettled},
		"TRYAGAIN Multiple keys request during rehashing of slot":                                        {resp.RedirectWait, "", store.Unsettled},
		"CLUSTERDOWN Hash slot not served":                                                               {resp.RedirectWait, "", store.Unsettled},
		"ERR Script attempted to access a non local key in a cluster node script: f, on @user_script:1.": {resp.RedirectWait, "", store.Unsettled},
	} {
		outcome, err := script.Classify(resp.ErrorOf(resp.Value{Kind: '-', Text: []byte(reply)}))
		d, ok := errors.AsType[*resp.Redirection](err)
		if !ok || d.Kind != want.kind || outcome != want.as || !strings.HasPrefix(err.Error(), reply) {
			t.Errorf("%q: %v, %v, want kind %v and %v", reply, outcome, err, want.kind, want.as)
			continue
		}
		if host, ok := MemberOf(d, "asked:7000"); want.host != "" && (!ok || host != want.host) {
			t.Errorf("%q leads to %q, want %q", reply, host, want.host)
		}
	}
	for _, reply := range []string{"MOVED", "MOVED x a:1", "MOVED 16384 a:1", "MOVED -1 a:1", "ASK 1", "ASK 1 a:1 b:2", "ERR no"} {
		if d := resp.RedirectionOf(resp.ErrorOf(resp.Value{Kind: '-', Text: []byte(reply)})); d != nil {
			t.Errorf("%q is read as %+v, want no redirection", reply, d)
		}
	}
	for _, host := range []string{"a", "a:0", "a:70000", "?:1"} {
		if got, ok := MemberOf(&resp.Redirection{Host: host}, "b:1"); ok {
			t.Errorf("%q leads to %q, want no member", host, got)
		}
	}
}
